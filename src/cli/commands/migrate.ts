import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev migrate --from /var/lib/ev
  ev migrate --from /var/lib/ev --to postgres://ev@db.example.com/ev --json

Stop "ev serve" first. The PostgreSQL database must be empty. The copy is atomic, and the data directory is not
changed. Set EV_SECRET to the secret of the data directory for every process that uses the copy.`

export function addMigrate(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const migrate = ev
    .command('migrate')
    .description('copy a data directory into a PostgreSQL database, which machines can share')
    .option('--from <DIR>', "the data directory (default: EV_DATA_DIR, then the user's)")
    .option('--to <URL>', 'postgres://… (default: EV_DATABASE)')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { migrateCommand } = await import('../migrate.ts')
      setExitCode(await migrateCommand(context, flags))
    })
  addSettings(migrate, context, ['secret', 'secretFile'])
}
