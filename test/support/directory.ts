/** The run's own directory under os.tmpdir(), made by global.ts and removed with all that is in it at the end. */
export function runDirectory(): string {
  const directory = process.env.STRONGROOM_TEST_DIRECTORY
  if (directory === undefined) throw new Error('not under vitest: test/support/global.ts has not run')
  return directory
}
