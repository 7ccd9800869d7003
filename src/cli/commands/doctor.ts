import type { Command } from 'commander'
import type { CliContext, SetExitCode } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev doctor --helo probe.example.com --mail-from probe@example.com
  ev doctor --json
  ev doctor --ask mx.example.com,192.0.2.25

Exit codes: 0 no check failed (there may be warnings), 1 at least one check failed.`

export function addDoctor(ev: Command, context: CliContext, setExitCode: SetExitCode): void {
  const doctor = ev
    .command('doctor')
    .description("check this machine's DNS, port 25, HELO, SPF and blocklists")
    .option(
      '--ask <host,…>',
      'mail servers to connect to, by name or IP address (default: large providers)',
    )
    .option('--json', 'print the results as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { doctorCommand } = await import('../doctor.ts')
      setExitCode(await doctorCommand(context, flags))
    })
  addSettings(doctor, context)
}
