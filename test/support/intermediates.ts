import { Decipheriv } from 'node:crypto'
import { vi } from 'vitest'

/** The buffers that node:crypto returns from decryption during the work. */
export async function decrypted(work: () => Promise<unknown>): Promise<Buffer[]> {
  const given: Buffer[] = []
  const { update } = Decipheriv.prototype
  Decipheriv.prototype.update = function (this: Decipheriv, ...words: Parameters<typeof update>) {
    const bytes = update.apply(this, words) as unknown as Buffer
    given.push(bytes)
    return bytes
  } as typeof update
  try {
    await work()
  } finally {
    Decipheriv.prototype.update = update
  }
  return given
}

/** The buffers that were joined from others during the work. */
export function joined(work: () => unknown): Buffer[] {
  const joining = vi.spyOn(Buffer, 'concat')
  try {
    work()
    return joining.mock.results.flatMap(({ value }) => (Buffer.isBuffer(value) ? [value] : []))
  } finally {
    joining.mockRestore()
  }
}
