import { load } from './load.ts'
import type { Measuring } from './measure.ts'
import type { StrongroomNode } from './node.ts'
import type { LoadRequest } from './server.ts'
import { spread } from './statistics.ts'

/** The CPU of refusing a ciphertext whose AES-GCM tag is forged, beside a good one: pairs of requests to decrypt. */
export async function forgedTag(node: StrongroomNode, good: LoadRequest, options: Measuring): Promise<string> {
  const forged = node.under({ ...good, body: withForgedTag(good.body ?? ''), refused: true })
  const ratios: number[] = []
  for (let pair = 1; pair <= options.pairs; pair++) {
    options.progress(`forged tag: pair ${pair} of ${options.pairs}`)
    const served = await load(node.under(good), options.seconds, options.directory)
    const refused = await load(forged, options.seconds, options.directory)
    ratios.push(refused.cpuMicrosecondsPerRequest / served.cpuMicrosecondsPerRequest)
  }
  const { median, lowerQuartile, upperQuartile } = spread(ratios)
  const [middle, low, high] = [median, lowerQuartile, upperQuartile].map((ratio) => ratio.toFixed(2))
  return `\na forged GCM tag costs ${middle} times (${low} to ${high}) the CPU of a good decryption`
}

/** @param body of a request to decrypt */
function withForgedTag(body: string): string {
  const { ciphertext } = JSON.parse(body) as { ciphertext: string }
  const end = ciphertext.lastIndexOf(':') + 1
  const bytes = Buffer.from(ciphertext.slice(end), 'base64')
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1)
  return JSON.stringify({ ciphertext: ciphertext.slice(0, end) + bytes.toString('base64') })
}
