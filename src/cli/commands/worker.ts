import type { Command } from 'commander'
import { ENGINE_SETTINGS } from '../../config/settings.ts'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev worker
  ev worker --helo probe2.example.com --egress probe2 --concurrency 100

It works on the lists that come to “ev serve”, beside that and other workers, on any number of machines: all name the
same PostgreSQL database. It has no API. --metrics-listen 127.0.0.1:9090 opens a port for /livez, /readyz, /health and
/metrics. Set the rest (plans, operators, own lists) as on the machine of the service; where EV_SECRET or a secret in
the data directory is there, it must be the same.

SIGTERM or Ctrl-C ends it within 15 seconds, and others go on with what it had; a second one ends it at once. SIGHUP
reads own lists and operators again.`

export function addWorker(ev: Command, context: CliContext, end: EndWith): void {
  const worker = ev
    .command('worker')
    .description('one more worker on the database of a service')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { workerCommand } = await import('../serve/worker.ts')
      end(await workerCommand(context, flags))
    })
  addSettings(worker, context, [
    ...ENGINE_SETTINGS.map(one => one.key),
    ...(['metricsListen', 'metricsToken', 'secret', 'secretFile'] as const),
  ])
}
