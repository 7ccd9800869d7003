import type { Context } from 'hono'
import { html } from 'hono/html'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { isDone, type Progress } from './progress.ts'
import { verdictBody } from './verdict.ts'
import type { DomainStep } from './verify-events.ts'

/** Renders the five steps. All are present from the start, so the layout does not shift. */
export const steps = (c: Context<Env>, progress: Progress): Html =>
  html`<ol class="steps">${rows(c, progress)}</ol>`

/** Renders the rows in order; `verify.js` replaces each row by its ID. */
export const rows = (c: Context<Env>, progress: Progress): readonly Html[] => [
  row('syntax', 'Syntax', syntaxRow(progress)),
  row('domain', 'Domain', domainRow(progress)),
  row('servers', 'Mail servers', serversRow(progress)),
  row('dialogue', 'Dialogue', dialogueRow(progress)),
  row('verdict', 'Verdict', verdictRow(c, progress)),
]

/** `open`: the step was inconclusive. `now`: it is running. Null: it has not run. */
type State = 'ok' | 'bad' | 'open' | 'now' | null

type Row = { readonly state: State; readonly text: Html | string; readonly more?: Html }

const row = (name: string, title: string, { state, text, more }: Row): Html => html`
  <li id="step-${name}" ${state === null ? NOTHING : html`class="is-${state}"`}>
    <h3 id="title-${name}" tabindex="-1">${title}</h3>
    ${text === '' ? NOTHING : html`<p>${text}</p>`} ${more ?? NOTHING}
  </li>`

function syntaxRow(progress: Progress): Row {
  const { form, syntax } = progress
  const text = 'Checks that the address is well-formed.'
  if (syntax !== null) return { state: syntax.ok ? 'ok' : 'bad', text: syntax.text }
  if (isDone(progress)) return { state: null, text: 'Not checked.' }
  return { state: form === null ? null : 'now', text }
}

function domainRow(progress: Progress): Row {
  const { syntax, domain } = progress
  if (domain !== null) {
    const state = domain.ok === null ? 'open' : domain.ok ? 'ok' : 'bad'
    return { state, text: domain.text }
  }
  if (isDone(progress)) return { state: null, text: 'Not checked.' }
  const state = syntax?.ok ? 'now' : null
  return { state, text: 'Checks that the domain exists and accepts mail.' }
}

function serversRow(progress: Progress): Row {
  const { domain, servers, cached } = progress
  const list = hostsOf(domain)
  if (cached !== null) return { state: 'ok', text: cached, more: list }
  const last = servers.at(-1)
  if (last !== undefined) {
    // A server without an answer is inconclusive: it says nothing about the address.
    const [text, ...earlier] = servers.map(one => one.text).toReversed()
    const more = html`${earlier.map(line => html`<p>${line}</p>`)}${list}`
    return { state: last.ok ? 'ok' : 'open', text: text ?? '', more }
  }
  if (isDone(progress)) return { state: null, text: 'Not contacted.', more: list }
  const state = domain?.ok ? 'now' : null
  return { state, text: 'Connects to the mail servers of the domain.', more: list }
}

/** ev contacts no more servers than this. */
const HOSTS_SHOWN_MAX = 5

function hostsOf(domain: DomainStep | null): Html {
  const hosts = domain?.hosts ?? []
  if (hosts.length === 0) return NOTHING
  const shown = hosts
    .slice(0, HOSTS_SHOWN_MAX)
    .map(({ preference, host }) => `${preference} ${host}`)
  const left = hosts.length - shown.length
  return html`<p><small>By preference: ${shown.join(', ')}${left > 0 ? ` and ${left} more` : ''}</small></p>`
}

function dialogueRow(progress: Progress): Row {
  const { form, servers, lines, cached } = progress
  const isRunning = form !== null && !isDone(progress)
  // Reserve the space while the dialogue may still start.
  const more = isRunning || lines.length > 0 ? dialogue(lines) : NOTHING
  const text = 'The SMTP dialogue between ev (C) and the mail server (S). No mail is sent.'
  if (lines.length > 0) return { state: isRunning ? 'now' : 'ok', text, more }
  if (cached !== null) return { state: null, text: 'Not needed: the result is cached.', more }
  if (isDone(progress)) return { state: null, text: 'No dialogue.' }
  return { state: servers.at(-1)?.ok ? 'now' : null, text, more }
}

/** `tabindex` makes the scrollable box reachable by keyboard. */
const dialogue = (lines: readonly string[]) =>
  html`<pre class="dialogue" tabindex="0" role="region" aria-label="Lines of the dialogue">${lines.map(line => `${line}\n`).join('')}</pre>`

function verdictRow(c: Context<Env>, progress: Progress): Row {
  const { form, result, error } = progress
  if (error !== null) {
    return { state: 'open', text: '', more: notice('bad', error.error) }
  }
  if (result === null || form === null) {
    return { state: null, text: 'The result and what to do.' }
  }
  const kind = toClass(VERDICT_BY_REASON[result.reason])
  return { state: STATES[kind], text: '', more: verdictBody(c, { form, result, kind }) }
}

const STATES = { deliverable: 'ok', risky: 'open', undeliverable: 'bad', unknown: 'open' } as const
