/** One request of a client; the n-th of that client. */
export type Step = (client: number, n: number) => Promise<void>

/** The result of clients that never pause. */
export interface Drive {
  readonly changesPerSecond: number
  readonly p50Milliseconds: number
  readonly p99Milliseconds: number
}

/** So many clients, each of which makes one change after the other for so long. */
export async function drive(step: Step, clients: number, seconds: number): Promise<Drive> {
  const began = performance.now()
  const end = began + seconds * 1000
  const taken: number[] = []
  const client = async (number: number): Promise<void> => {
    for (let n = 0; performance.now() < end; n++) {
      const start = performance.now()
      await step(number, n)
      taken.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  const elapsedSeconds = (performance.now() - began) / 1000
  const sorted = taken.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
  return { changesPerSecond: taken.length / elapsedSeconds, p50Milliseconds: at(0.5), p99Milliseconds: at(0.99) }
}
