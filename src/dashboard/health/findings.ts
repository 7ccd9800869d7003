import { html } from 'hono/html'
import type { Check, CheckName } from '../../doctor/doctor.ts'
import type { Finding } from '../../doctor/finding.ts'
import { pluralize } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import type { DoctorChecks } from './source.ts'

/** Renders the results of the doctor checks; the fragment polls itself while they run. */
export function findings({ checks, at, isRunning, fault }: DoctorChecks): Html {
  const polling = html`hx-get="/doctor/findings" hx-trigger="every 1s" hx-swap="outerHTML"`
  return html`
    <section id="findings" ${isRunning ? polling : NOTHING}>
      <h2>This machine</h2>
      <p>${isRunning ? running(at) : summary(checks)} ${at === null ? NOTHING : checkedAt(at)}</p>
      ${fault === null ? NOTHING : notice('bad', `The checks failed: ${sanitizeText(fault)}. Try again, or run: ev doctor`)}
      ${checks.length === 0 ? NOTHING : table(checks)}
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

const table = (checks: readonly Check[]) => html`
  <div class="scroll"><table>
    <thead><tr><th scope="col">Check</th><th scope="col">Status</th><th scope="col">Result and fix</th></tr></thead>
    <tbody>${checks.map(
      ({ check, egress, state, says, todo }, i) => html`
        <tr ${isFirst(checks, i) ? html`id="check-${check}"` : NOTHING}>
          <th scope="row">${NAMES[check]}${egress === null ? NOTHING : html` <small>${egress}</small>`}</th>
          <td>${statusIcon(state)}</td>
          <td>${says}${todo === null ? NOTHING : html`<br /><b>Fix:</b> ${todo}`}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

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
}

export type State = Finding['state']

/** Renders a status with an icon and a label, so it does not depend on color. */
export function statusIcon(state: State, label = LABELS[state]): Html {
  const { icon, kind } = STYLES[state]
  return html`<span class="badge is-${kind}"><span aria-hidden="true">${icon}</span> ${label}</span>`
}

const LABELS: Readonly<Record<State, string>> = {
  ok: 'passed',
  warn: 'warning',
  fail: 'failed',
}

const STYLES: Readonly<Record<State, { readonly icon: string; readonly kind: string }>> = {
  ok: { icon: '✓', kind: 'ok' },
  warn: { icon: '!', kind: 'warn' },
  fail: { icon: '✕', kind: 'bad' },
}
