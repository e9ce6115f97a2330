import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Reporter, TestModule, TestSuite } from 'vitest/node'

/** Cut to a length that leaves room for others. */
const longestReason = 1200

interface Fault {
  readonly message: string
  readonly stack?: string | undefined
}

const told = (title: string, errors: readonly Fault[]): string => {
  const reasons = errors.map(({ message, stack }) => stripVTControlCharacters(stack ?? message)).join('\n')
  return `FAILED ${title}\n${reasons.slice(0, longestReason)}`
}

/** Files and suites that failed outside of their tests: what is told of a failed hook stands at its suite. */
const broken = (module: TestModule): readonly (TestModule | TestSuite)[] =>
  [module, ...module.children.allSuites()].filter((one) => one.errors().length > 0)

/**
 * Counts a run for `.ci/run`: the first line of a file is "passed failed", and each failed test, hook or file follows
 * with its reason. The JSON of vitest leaves out why a hook failed.
 * @param file the path to write to
 */
export const counted = (file: string): Reporter => ({
  onTestRunEnd(modules, unhandled) {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const failures = [
      ...tests.flatMap((one) => {
        const { state, errors } = one.result()
        return state === 'failed' ? [told(`${one.module.moduleId}: ${one.fullName}`, errors)] : []
      }),
      ...modules.flatMap((module) =>
        broken(module).map((one) =>
          told(`${module.moduleId}${one.type === 'module' ? '' : `: ${one.fullName}`}`, one.errors()),
        ),
      ),
      ...unhandled.map((error) => told('outside of all tests', [error])),
    ]
    const passed = tests.filter((one) => one.result().state === 'passed').length
    // A run without tests has shown nothing, and so has a file that failed without a word.
    const silent = modules.every((module) => module.ok()) && passed > 0 ? 0 : 1
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, [`${passed} ${Math.max(failures.length, silent)}`, ...failures, ''].join('\n'))
  },
})
