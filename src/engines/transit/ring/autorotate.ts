import type { Clock } from '../../../clock.ts'
import type { Job } from '../../../job.ts'
import type { Database } from '../../../store/database.ts'
import { LeaseLost } from '../../../store/faults.ts'
import { pages } from '../../../store/pages.ts'
import type { Transaction } from '../../../store/reader.ts'
import { dueBy } from '../../../store/table.ts'
import type { KeyRotation } from './rotation.ts'
import { dueKeys, type KeyRow } from './tables.ts'

const everySeconds = 60
const keysAtOnce = 100
/** The maker in the history of such a version. */
const createdBy = 'auto-rotation'

interface AutoRotationDeps {
  readonly database: Database
  readonly rotation: KeyRotation
  readonly clock: Clock
}

/**
 * Rotates keys whose period is over. Candidates are read unverified; the sealed row of the key decides, in the
 * transaction that rotates it: however many workers try, a key rotates once in a period.
 */
export function autoRotation({ database, rotation, clock }: AutoRotationDeps): Job {
  const job = 'rotate transit keys'
  const order = { by: ['rotateAt', 'id'], limit: keysAtOnce } as const

  async function rotate(mount: string, name: string, fence: bigint): Promise<void> {
    const isDue = async (tx: Transaction, { rotateAt }: KeyRow) => {
      await tx.fence(job, fence)
      return rotateAt !== null && rotateAt <= clock.wall()
    }
    await rotation.rotate({ uuid: mount }, name, createdBy, { isDue })
  }

  return {
    name: job,
    everySeconds,
    async run(signal, fence) {
      const faults: unknown[] = []
      const due = { rotateAt: dueBy(clock.wall()) }
      for await (const page of pages(database, database.unverified(dueKeys), due, order)) {
        for (const { mount, name } of page) {
          if (signal.aborted) break
          await rotate(mount, name, fence).catch((error: unknown) => {
            if (error instanceof LeaseLost) throw error
            faults.push(error)
          })
        }
        if (signal.aborted) break
      }
      if (faults.length > 0) throw new AggregateError(faults, `${faults.length} keys failed to rotate automatically`)
    },
  }
}
