// Prints "passed failed" of one of vitest's JSON reports, and each failed test with its reason to stderr.
import { readFileSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'

const report = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'))
const { numPassedTests: passed, numFailedTests: failed, success, testResults } = report
const longestReason = 600
/** Cut to a length that leaves room for others. */
const short = (text) => stripVTControlCharacters(text).slice(0, longestReason)

let broken = 0
for (const { name, status, message, assertionResults } of testResults) {
  const tests = assertionResults.filter((one) => one.status === 'failed')
  for (const one of tests) console.error(`FAILED ${name}: ${one.fullName}\n${short(one.failureMessages.join('\n'))}`)
  if (status === 'failed' && tests.length === 0) {
    broken++
    console.error(`FAILED ${name}\n${short(message)}`)
  }
}
console.log(passed, Math.max(failed + broken, success && passed > 0 ? 0 : 1))
