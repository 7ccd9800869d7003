import type { Command } from 'commander'
import { ENGINE_SETTINGS, SETTINGS } from '../../config/settings.ts'
import type { CliContext, SetExitCode } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { addSettings } from '../settings.ts'

const SERVE_EXAMPLES = `
Examples:
  ev serve
  ev serve --port 3000
  ev serve --listen 0.0.0.0:443 --tls-cert fullchain.pem --tls-key privkey.pem
  ev serve --trust-proxy 127.0.0.1 --base-url https://ev.example.com
  ev serve --notify-smtp smtp://127.0.0.1 --notify-from ev@example.com --notify-to ops@example.com

The first start creates an account and a key with all scopes, and prints the key once. Open the address of the service
in a browser to use the dashboard, and sign in with a key. On a terminal, the first start prints a sign-in link that is
valid for one hour.

Secrets are set in the environment, not as options: EV_SECRET (or EV_SECRET_FILE) and EV_METRICS_TOKEN.

If an event could not be delivered to a webhook in six attempts, ev sends an alert by email, at most once an hour: to
the address of the account ("ev help accounts"), otherwise to --notify-to. Without a mail server, ev writes the alert
to the log. Credentials are sent over TLS only: EV_NOTIFY_SMTP=smtps://user:password@mail.example.com.

SIGTERM or Ctrl-C stops the service after it has answered the requests in flight; a second signal stops it at once.
SIGHUP reloads custom lists, operators and certificates.`

export function defineServe(serve: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(serve)
  serve.addHelpText('after', SERVE_EXAMPLES).action(async flags => {
    const { serveCommand } = await import('../serve/serve.ts')
    setExitCode(await serveCommand(context, flags))
  })
  addSettings(
    serve,
    context,
    SETTINGS.map(one => one.key),
  )
}

const WORKER_EXAMPLES = `
Examples:
  EV_DATABASE=postgres://ev:…@db.example.com/ev ev worker
  ev worker --helo probe2.example.com --egress probe2 --concurrency 100

A worker processes lists submitted to "ev serve". Run any number of workers on any number of machines, all with the same
PostgreSQL database. A worker serves no API. --metrics-listen 127.0.0.1:9090 opens a port for /livez, /readyz, /health
and /metrics. Use the same plans, operators and custom lists as the service. If EV_SECRET or a secret in the data
directory is set, it must be the same as that of the service.

SIGTERM or Ctrl-C stops the worker within 15 seconds, and other workers take over its items; a second signal stops it at
once. SIGHUP reloads custom lists and operators.`

export function defineWorker(worker: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksWithoutData(worker)
  worker.addHelpText('after', WORKER_EXAMPLES).action(async flags => {
    const { workerCommand } = await import('../serve/worker.ts')
    setExitCode(await workerCommand(context, flags))
  })
  addSettings(worker, context, [
    ...ENGINE_SETTINGS.map(one => one.key),
    ...(['metricsListen', 'metricsToken', 'secret', 'secretFile'] as const),
  ])
}
