import './supervisor/loading.ts'

/** The entry of a worker process. */
const { runWorker } = await import('./supervisor/runworker.ts')
const { createApp } = await import('./app.ts')
runWorker(createApp)
