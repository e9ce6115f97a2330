import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
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
