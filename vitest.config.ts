import { defineConfig } from 'vitest/config'
import { counted } from './test/support/counted.ts'

const { STRONGROOM_TEST_REPORT: report } = process.env

export default defineConfig({
  test: {
    reporters: report === undefined ? ['default'] : ['default', counted(report)],
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global.ts'],
    // The PKCS#11 module is native and holds one login per process: a process for each file, never a thread.
    pool: 'forks',
    // One more than CI has cores: tests wait for processes and disks.
    maxWorkers: 3,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
