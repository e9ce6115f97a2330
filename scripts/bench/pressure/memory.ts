import { load } from '../load.ts'
import { prepareRows } from '../rows.ts'
import { type PressureBench, startNode } from './start.ts'

/** Until the heap has found its size. */
const warm = 120_000
const counted = 30_000
/** A leak grows in each. */
const portions = 3

/**
 * The growth of a warm worker with each certificate, portion by portion: signed for a caller's key, and issued with a
 * P-256 key.
 */
export async function memoryOfIssuing(bench: PressureBench): Promise<string> {
  await using node = await startNode(bench)
  const rowOf = await prepareRows(node)
  const growth = async (title: string): Promise<string> => {
    const server = node.under((await rowOf(title)).request)
    const serve = async (requests: number): Promise<number> => {
      let served = 0
      while (served < requests) {
        bench.progress(`memory: ${title}: ${served} of ${requests}`)
        served += (await load(server, 5, bench.directory)).requests
      }
      return served
    }
    await serve(warm)
    const kilobytes = []
    for (let portion = 0; portion < portions; portion++) {
      const before = node.workerBytes
      const served = await serve(counted)
      kilobytes.push(((node.workerBytes - before) / served / 1000).toFixed(2))
    }
    return `${kilobytes.join(', ')} kB`
  }
  const [signed, issued] = [await growth('sign a CSR, ec-256'), await growth('issue ec-256, no_store')]
  return `a certificate that is signed takes ${signed}, one that is issued ${issued}`
}
