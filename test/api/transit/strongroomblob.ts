import { createHash } from 'node:crypto'
import { base64, done, type TestNode } from '../node.ts'

/** A version of a key as a backup of ours holds it. */
export type BlobVersion = Record<string, unknown>
export type BlobKey = Record<string, unknown> & { versions: BlobVersion[] }

export const backup = async (node: TestNode, name: string): Promise<string> =>
  (await done(node.root.get(`transit/backup/${name}`))).string('data.backup')

/** The key in a backup, to be forged. */
export const keyOf = (blob: string): BlobKey => JSON.parse(Buffer.from(blob, 'base64').toString()).key

/**
 * A backup whose checksum is right, as anybody can make one.
 * @param splice puts text in the place of other text that JSON.stringify cannot write
 */
export function blobOf(key: unknown, splice: readonly (readonly [string, string])[] = []): string {
  const spliced = (text: string) => splice.reduce((rest, [from, to]) => rest.replace(from, to), text)
  const text = spliced(JSON.stringify(key))
  const sha256 = createHash('sha256').update(text).digest('hex')
  return base64(`{"strongroom_backup":1,"sha256":"${sha256}","key":${text}}`)
}
