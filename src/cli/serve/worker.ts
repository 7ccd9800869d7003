import type { Command } from 'commander'
import { ENGINE_SETTINGS } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev worker
  ev worker --helo probe2.example.com --egress probe2 --concurrency 100

A worker processes lists submitted to "ev serve". Run any number of workers on any number of machines, all with the same
PostgreSQL database. A worker serves no API. --metrics-listen 127.0.0.1:9090 opens a port for /livez, /readyz, /health
and /metrics. Use the same plans, operators and custom lists as the service. If EV_SECRET or a secret in the data
directory is set, it must be the same as that of the service.

SIGTERM or Ctrl-C stops the worker within 15 seconds, and other workers take over its items; a second signal stops it at
once. SIGHUP reloads custom lists and operators.`

export function defineWorker(worker: Command, context: CliContext): void {
  worksWithoutData(worker)
  worker.addHelpText('after', EXAMPLES).action(async flags => {
    const { runWorker } = await import('./run-worker.ts')
    await runWorker(context, flags)
  })
  addSettings(worker, context, [
    ...ENGINE_SETTINGS.map(one => one.key),
    ...(['metricsListen', 'metricsToken', 'secret', 'secretFile'] as const),
  ])
}
