import type { CliContext } from '../context.ts'
import type { ServeLog } from './log.ts'

export type Banner = {
  /** Where it listens, as a URL. */
  readonly place: string
  /** Where clients find it. */
  readonly baseUrl: string
  readonly isPlain: boolean
  /** The text of the first key, at the first start. */
  readonly key: string | null
  /** The path of the page that shows the key once; null: there is none. */
  readonly path: string | null
  /** A note about our own name, where that is needed. */
  readonly hint: string | null
}

/** Says where the service listens and what to do first; the key goes to stdout alone, and only now. */
export function printBanner(
  context: CliContext,
  log: ServeLog,
  { place, baseUrl, isPlain, key, path, hint }: Banner,
): void {
  const say = (text: string) =>
    log.isPretty ? void context.stderr.write(`${text}\n`) : log.info(text)
  if (hint !== null) say(hint)
  log.info(`listening on ${place}`, { baseUrl, tls: !isPlain })
  if (isPlain)
    say('This is plain HTTP: for trying out, and for proxies that speak TLS with clients.')
  if (key !== null) {
    context.stdout.write(`${key}\n`)
    say(
      'The first key is printed on stdout, this once. It may do everything: export EV_KEY=ev_live_…',
    )
  }
  if (path === null) say(`Dashboard: ${baseUrl}/`)
  else say(`Dashboard: ${baseUrl}${path} shows the key and signs you in, once, within an hour.`)
  say(curl(baseUrl))
  say(`All paths: ${baseUrl}/docs`)
}

const curl = (baseUrl: string) =>
  `One address: curl -s ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_KEY" ` +
  `-H 'Content-Type: application/json' -d '{"email": "user@example.com"}'`
