import type { Command } from 'commander'
import { SETTINGS } from '../../config/settings.ts'
import type { CliContext } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
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

export function defineServe(serve: Command, context: CliContext): void {
  worksWithoutData(serve)
  serve.addHelpText('after', EXAMPLES).action(async flags => {
    const { runService } = await import('./run-service.ts')
    await runService(context, flags)
  })
  addSettings(
    serve,
    context,
    SETTINGS.map(one => one.key),
  )
}
