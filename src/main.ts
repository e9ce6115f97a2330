import './supervisor/loading.ts'

/** The entry of the command line, and of the supervisor. */
const { run } = await import('./commands/program.ts')
await run()
