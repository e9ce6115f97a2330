import { createApp } from './app.ts'
import { work } from './supervisor/work.ts'

/** The entry of a worker process. */
work(createApp)
