import { html } from 'hono/html'
import type { Check, CheckName } from '../../doctor/doctor.ts'
import type { DoctorChecks } from '../../doctor/doctor-cache.ts'
import type { Finding } from '../../doctor/finding.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { capitalize, statusBadge, type Tone, time } from '../page/text.ts'

/** Renders the results of the doctor checks; the fragment polls itself while they run. */
export function findings({ checks, at, isRunning, fault }: DoctorChecks): Html {
  const polling = html`hx-get="/doctor/findings" hx-trigger="every 1s" hx-swap="outerHTML"`
  return html`
    <section id="findings" ${isRunning ? polling : NOTHING}>
      <h2>This machine</h2>
      <p>${isRunning ? running(at) : summary(checks)} ${at === null ? NOTHING : checkedAt(at)}</p>
      ${fault === null ? NOTHING : notice('bad', `The checks failed: ${sanitizeText(fault)}. Try again, or run: ev doctor`)}
      ${checks.length === 0 ? NOTHING : checkTable(checks)}
    </section>`
}

const running = (at: number | null) =>
  at === null
    ? 'Running the checks of ev doctor. Results appear here within 20 seconds. Without JavaScript, reload this page.'
    : 'Running the checks again. The previous results are shown until they finish.'

const checkedAt = (at: number) => html`<small>Checked at ${time(at)}.</small>`

function summary(checks: readonly Check[]): string {
  const numberOf = (state: State) => checks.filter(check => check.state === state).length
  const [failed, warned] = [numberOf('fail'), numberOf('warn')]
  if (checks.length === 0) return 'No results yet.'
  const warnings = warned === 0 ? '' : pluralize(warned, 'warning')
  if (failed > 0) {
    const failures = pluralize(failed, 'failure')
    return `${failures}${warnings === '' ? '' : `, ${warnings}`}. Fix the failures before verifying addresses.`
  }
  return warnings === '' ? 'All checks passed.' : `${warnings}. Mail servers can be probed.`
}

const checkTable = (checks: readonly Check[]): Html =>
  table({
    caption: 'Results of the checks',
    rows: checks,
    row: ({ check }, i) => (isFirst(checks, i) ? html`id="check-${check}"` : NOTHING),
    columns: [
      {
        label: 'Check',
        kind: 'name',
        cell: ({ check, egress }) =>
          html`${NAMES[check]}${egress === null ? NOTHING : html` <small>${egress}</small>`}`,
      },
      { label: 'Status', cell: ({ state }) => statusIcon(state) },
      {
        label: 'Result and fix',
        kind: 'wide',
        cell: ({ says, todo }) =>
          html`${capitalize(says)}${todo === null ? NOTHING : html`<br /><b>Fix:</b> ${todo}`}`,
      },
    ],
  })

/** Links on the page point to the first check of a name. */
const isFirst = (checks: readonly Check[], i: number) =>
  checks.findIndex(({ check }) => check === checks[i]?.check) === i

const NAMES: Readonly<Record<CheckName, string>> = {
  dns: 'DNS',
  'port-25': 'Port 25',
  address: 'Public IP address',
  ptr: 'Reverse DNS (PTR)',
  helo: 'HELO name',
  'mail-from': 'Sender',
  spf: 'SPF',
  blocklists: 'Blocklists',
  ipv6: 'IPv6',
  clock: 'Clock',
  disk: 'Disk',
  'open-files': 'Open files',
  database: 'Database',
  'data-directory': 'Data directory',
  'sign-in': 'Identity provider',
}

export type State = Finding['state']

/** Renders the status of a check or an operator. */
export const statusIcon = (state: State, label = LABELS[state]): Html =>
  statusBadge(TONES[state], label)

const LABELS: Readonly<Record<State, string>> = { ok: 'OK', warn: 'Warning', fail: 'Failed' }
const TONES: Readonly<Record<State, Tone>> = { ok: 'ok', warn: 'warn', fail: 'bad' }
