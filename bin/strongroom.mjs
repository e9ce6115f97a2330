#!/usr/bin/env node
import { join } from 'node:path'
import { launch, project } from '../scripts/launch.mjs'

process.exitCode = await launch([join(project, 'src', 'main.ts'), ...process.argv.slice(2)])
