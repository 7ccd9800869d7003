import type { Command } from 'commander'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev doctor --helo probe.example.com --mail-from probe@example.com
  ev doctor --json
  ev doctor --ask mx.example.com,192.0.2.25

Exit codes: 0 fit, perhaps with warnings; 1 something must be mended first.`

export function addDoctor(ev: Command, context: CliContext, end: EndWith): void {
  const doctor = ev
    .command('doctor')
    .description('examine whether this machine is fit to ask mail servers')
    .option(
      '--ask <host,…>',
      'mail servers to call at, by name or address (default: large providers)',
    )
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { doctorCommand } = await import('../doctor.ts')
      end(await doctorCommand(context, flags))
    })
  addSettings(doctor, context)
}
