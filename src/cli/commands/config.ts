import type { Command } from 'commander'
import { SETTINGS } from '../../config/settings.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev config
  ev config --json
  EV_HELO=probe.example.com ev config --proxy socks5://proxy.example.com:1080

Passwords in URLs are not shown. – means that a setting is not set and ev uses its default ("ev help verify").`

export function addConfig(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const config = ev
    .command('config')
    .description('show every setting with its value and source')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { configCommand } = await import('../config-command.ts')
      setExitCode(configCommand(context, flags))
    })
  addSettings(
    config,
    context,
    SETTINGS.map(one => one.key),
  )
}
