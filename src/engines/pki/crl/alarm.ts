/** Something that only somebody with access to the database can have done to revocations or lists. */
export interface Alarm {
  /** Hexadecimal (`crlIssuerOf`). */
  readonly crlIssuer: string
  /** Undefined where it concerns all sites. */
  readonly site: string | undefined
  readonly text: string
}

export type OnAlarm = (alarm: Alarm) => void
