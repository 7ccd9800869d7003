import type { Command } from 'commander'
import { SETTINGS } from '../../config/settings.ts'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev config
  ev config --json
  EV_HELO=probe.example.com ev config --proxy socks5://proxy.example.com:1080

Passwords in URLs are not shown. – means: not set, so ev decides (“ev help verify” says how).`

export function addConfig(ev: Command, context: CliContext, end: EndWith): void {
  const config = ev
    .command('config')
    .description('every setting, its value, and where that comes from')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { configCommand } = await import('../config-command.ts')
      end(configCommand(context, flags))
    })
  addSettings(
    config,
    context,
    SETTINGS.map(one => one.key),
  )
}
