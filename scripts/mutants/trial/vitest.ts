/**
 * Runs test files of a copy of the project, one after the other, and tells the parent process how each goes. A process
 * of its own, because a mutant may hang it. Arguments: the copy, a setup file or an empty text, and the files in their
 * order.
 */
import { join, relative } from 'node:path'
import { BaseSequencer, startVitest, type TestSpecification } from 'vitest/node'

/** A message to the parent, about one file. */
export type Message =
  | { readonly kind: 'failed'; readonly file: string; readonly test: string; readonly reason: string }
  | { readonly kind: 'ended'; readonly file: string }
  /** With errors that belong to no test. */
  | { readonly kind: 'over'; readonly errors: readonly string[] }

const [root = '', setup = '', ...files] = process.argv.slice(2)
const tell = (message: Message): void => void process.send?.(message)
const pathOf = ({ moduleId }: { readonly moduleId: string }): string => relative(root, moduleId)
const reasonOf = (errors: readonly { readonly message: string }[]): string =>
  errors.map(({ message }) => message).join('\n')

class InOrder extends BaseSequencer {
  override async sort(specifications: TestSpecification[]): Promise<TestSpecification[]> {
    return specifications.sort((one, other) => files.indexOf(pathOf(one)) - files.indexOf(pathOf(other)))
  }
}

// Without a parent nobody would end the tests' processes: this process leads a group of its own.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))

/** Absolute paths: vitest takes a part of a path for every file that contains it. */
const exact = files.map((file) => join(root, file))

const vitest = await startVitest(
  'test',
  exact,
  {
    ...{ root, watch: false, fileParallelism: false, maxWorkers: 1, globalSetup: [] },
    ...{ setupFiles: setup === '' ? [] : [setup], fsModuleCachePath: join(root, '.cache') },
    sequence: { sequencer: InOrder },
    reporters: [
      {
        onTestCaseResult: (test) => {
          const result = test.result()
          if (result.state !== 'failed') return
          tell({ kind: 'failed', file: pathOf(test.module), test: test.fullName, reason: reasonOf(result.errors) })
        },
        onTestModuleEnd: (module) => {
          const file = pathOf(module)
          const errors = module.errors()
          if (!module.ok()) tell({ kind: 'failed', file, test: '', reason: reasonOf(errors) })
          tell({ kind: 'ended', file })
        },
        onTestRunEnd: (_, errors) => tell({ kind: 'over', errors: errors.map(({ message }) => message) }),
      },
    ],
  },
  { cacheDir: join(root, '.cache', 'vite') },
)
await vitest.close()
process.exit()
