import type { Command } from 'commander'
import { SETTINGS } from '../../config/settings.ts'
import type { CliContext, EndWith } from '../context.ts'
import { addSettings } from '../settings.ts'

const EXAMPLES = `
Examples:
  ev serve
  ev serve --listen 0.0.0.0:443 --tls-cert fullchain.pem --tls-key privkey.pem
  ev serve --trust-proxy 127.0.0.1 --base-url https://ev.example.com
  ev serve --notify-smtp smtp://127.0.0.1 --notify-from ev@example.com --notify-to ops@example.com

The first start makes an account and a key that may do everything, and prints the key once. In a browser the address of
the service is its dashboard: sign in with a key; on a terminal the first start prints a link that does so, for an hour.

EV_METRICS_TOKEN and EV_SECRET, or EV_SECRET_FILE, are taken from the environment.

What could not be delivered to a webhook in six attempts is told by mail: to the address of its account (“ev help
accounts”), else to --notify-to, once an hour at most; without a mail server it is told in the log. A mail server that
asks for a name and a password gets them over TLS alone: EV_NOTIFY_SMTP=smtps://user:password@mail.example.com.

SIGTERM or Ctrl-C ends it when what was asked is answered, a second one at once. SIGHUP reads own lists, operators
and certificates again.`

export function addServe(ev: Command, context: CliContext, end: EndWith): void {
  const serve = ev
    .command('serve')
    .description('the HTTP service with its dashboard: verifications, lists, API keys')
    .addHelpText('after', EXAMPLES)
    .action(async flags => {
      const { serveCommand } = await import('../serve/serve.ts')
      end(await serveCommand(context, flags))
    })
  addSettings(
    serve,
    context,
    SETTINGS.map(one => one.key),
  )
}
