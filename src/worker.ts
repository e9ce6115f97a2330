import { createApp } from './app.ts'
import { runWorker } from './supervisor/runworker.ts'

/** The entry of a worker process. */
runWorker(createApp)
