import { Command, Option } from 'commander'
import type { Rotation } from '../keys/cluster/rotation.ts'
import { type KekPurpose, kekPurposes } from '../keys/tables.ts'
import { adoptCommand } from './adopt.ts'
import { newSheet } from './components.ts'
import { withCustody, withHsm } from './custody.ts'
import { kekLines, statusLines } from './kekstatus.ts'
import { withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
}

/** `strongroom kek …`: the keys that wrap keys (KEKs). */
export const kekCommand = (): Command =>
  new Command('kek')
    .description('the keys that wrap keys (KEKs)')
    .addCommand(rotate())
    .addCommand(status())
    .addCommand(adoptCommand())
    .addCommand(destroy())
    .addCommand(component())

const rotate = (): Command =>
  withForce(withConfig(new Command('rotate')))
    .description('announce the replacement of KEKs; the running nodes carry it out, `kek status` shows their progress')
    .addOption(
      new Option('--purpose <purpose>', 'only this purpose; otherwise all four, but for those under way').choices(
        kekPurposes,
      ),
    )
    .option('--components', 'custodians bring the new KEK by `kek adopt`; otherwise it is generated in the token')
    .action(async (options: Options & { purpose?: KekPurpose; components?: boolean }) => {
      await withRotation(options, async (rotation) => {
        const origin = options.components ? 'components' : 'generated'
        const announced = options.purpose
          ? [await rotation.announce(options.purpose, origin)]
          : await rotation.announceAll(origin)
        for (const { purpose, id } of announced) console.log(`announced: ${purpose} KEK ${id}`)
        for (const line of (await rotation.status()).flatMap(kekLines)) console.log(line)
      })
    })

const status = (): Command =>
  withForce(withConfig(new Command('status')))
    .description(
      'every KEK, the keys that would be lost with the token, and the workers whose token has not been shown to hold each KEK',
    )
    .option('--json', 'print JSON')
    .action(async (options: Options & { json?: boolean }) => {
      await withCustody(options, async ({ cluster: { rowKey }, rotation }, database, _settings, hsm) => {
        const { loneKeys } = await import('../ceremony/lonekeys.ts')
        const found = { rowKey, keks: await rotation.status(), lone: await loneKeys(database, hsm) }
        if (options.json) console.log(JSON.stringify(found))
        else for (const line of statusLines(found)) console.log(line)
      })
    })

const destroy = (): Command =>
  withForce(withConfig(new Command('destroy')))
    .argument('<id>', 'as shown by `kek status`')
    .description(
      'destroy a retired KEK in this token, after which older database dumps are useless, or give up a pending one; takes a minute',
    )
    .action(async (id: string, options: Options) => {
      await withRotation(options, async (rotation) => {
        const { dumpsUsableSince } = await rotation.destroy(id)
        console.log(`destroyed: ${id}`)
        if (dumpsUsableSince === undefined) console.log('its rotation is given up; no key was under it')
        else
          console.log(`database dumps are usable from ${new Date(dumpsUsableSince).toISOString()} on, no earlier ones`)
      })
    })

const component = (): Command =>
  withForce(withConfig(new Command('component')))
    .description(
      "print one custodian's components and their check values, drawn from the token's random generator; once",
    )
    .addHelpText(
      'after',
      '\nFor `init --kek components`, `kek adopt` and `kek rotate --components`. Any token will do.',
    )
    .action(async (options: Options) => {
      await withHsm(options, async (hsm) => {
        const { random } = await import('../keys/use/random.ts')
        console.log(await newSheet((bytes) => random(hsm, 'all', bytes)))
      })
    })

const withRotation = (options: Options, work: (rotation: Rotation) => Promise<void>): Promise<void> =>
  withCustody(options, (custody) => work(custody.rotation))
