/** A change of revocations or lists that only someone with access to the database can have made. */
export interface Alarm {
  /** Hexadecimal (`crlIssuerOf`). */
  readonly crlIssuer: string
  /** Undefined where it concerns all sites. */
  readonly site: string | undefined
  readonly text: string
}

export type OnAlarm = (alarm: Alarm) => void
