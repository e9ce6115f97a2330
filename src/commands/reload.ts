import { Command } from 'commander'
import { readRecord } from '../supervisor/record.ts'
import { upgraded } from '../supervisor/upgrade/outcome.ts'
import { readSettings, withConfig } from './settings.ts'

/** The server records a signal at once, and gives up 120 s after the last step. */
const patience = { startMilliseconds: 30_000, stepMilliseconds: 150_000 }

/** `strongroom reload`: has the server of this node reread its configuration, or start the new program. */
export const reloadCommand = (): Command =>
  withConfig(new Command('reload'))
    .description('have the server on this machine read its configuration again (SIGHUP); its log says the outcome')
    .option(
      '--exec',
      'have it start the program that is installed now in its place (SIGUSR2), and wait until that serves',
    )
    .action(reload)

/** @throws Error when no server runs here, the new program does not come to serve, or the server cannot say so */
async function reload({ config: file, exec = false }: { config?: string; exec?: boolean }): Promise<void> {
  const sources = { prompt: async () => 'not asked for', pin: false }
  const { stateDirectory } = (await readSettings(file, { ...process.env }, sources)).config
  const before = readRecord(stateDirectory)
  if (before === undefined) throw new Error(`no server with the state directory ${stateDirectory} runs`)
  process.kill(before.pid, exec ? 'SIGUSR2' : 'SIGHUP')
  if (!exec) {
    console.log(`process ${before.pid} reads its configuration again`)
    return
  }
  await upgraded(stateDirectory, before, patience)
  console.log('the new program serves')
}
