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

/** The five steps as a list: all of them are there from the start, so that nothing jumps. */
export const steps = (c: Context<Env>, progress: Progress): Html =>
  html`<ol class="steps">${rows(c, progress)}</ol>`

/** The rows, in their order; a script puts each in the place of the one before it. */
export const rows = (c: Context<Env>, progress: Progress): readonly Html[] => [
  row('syntax', 'Syntax', syntaxRow(progress)),
  row('domain', 'Domain', domainRow(progress)),
  row('servers', 'Mail servers', serversRow(progress)),
  row('dialogue', 'Dialogue', dialogueRow(progress)),
  row('verdict', 'Verdict', verdictRow(c, progress)),
]

/** `open`: the step could not tell. `null`: its turn has not come, or never will. */
type State = 'ok' | 'bad' | 'open' | 'now' | null

type Row = { readonly state: State; readonly text: Html | string; readonly more?: Html }

const row = (name: string, title: string, { state, text, more }: Row): Html => html`
  <li id="step-${name}" ${state === null ? NOTHING : html`class="is-${state}"`}>
    <h3 id="title-${name}" tabindex="-1">${title}</h3>
    ${text === '' ? NOTHING : html`<p>${text}</p>`} ${more ?? NOTHING}
  </li>`

function syntaxRow(progress: Progress): Row {
  const { form, syntax } = progress
  const text = 'Whether it is written as an address must be.'
  if (syntax !== null) return { state: syntax.ok ? 'ok' : 'bad', text: syntax.text }
  if (isDone(progress)) return { state: null, text: 'It was not looked at.' }
  return { state: form === null ? null : 'now', text }
}

function domainRow(progress: Progress): Row {
  const { syntax, domain } = progress
  if (domain !== null) {
    const state = domain.ok === null ? 'open' : domain.ok ? 'ok' : 'bad'
    return { state, text: domain.text }
  }
  if (isDone(progress)) return { state: null, text: 'It was not looked up.' }
  const state = syntax?.ok ? 'now' : null
  return { state, text: 'Whether the domain is there, and where its mail goes.' }
}

function serversRow(progress: Progress): Row {
  const { domain, servers, cached } = progress
  const list = hostsOf(domain)
  if (cached !== null) return { state: 'ok', text: cached, more: list }
  const last = servers.at(-1)
  if (last !== undefined) {
    // A server that does not answer says nothing of the address.
    const [text, ...before] = servers.map(one => one.text).toReversed()
    const more = html`${before.map(line => html`<p>${line}</p>`)}${list}`
    return { state: last.ok ? 'ok' : 'open', text: text ?? '', more }
  }
  if (isDone(progress)) return { state: null, text: 'None of them was called.', more: list }
  const state = domain?.ok ? 'now' : null
  return { state, text: 'Whether the servers that take its mail answer.', more: list }
}

/** Of a domain with more servers the others are never called. */
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
  const isGoingOn = form !== null && !isDone(progress)
  // Its place is kept while it may still begin.
  const more = isGoingOn || lines.length > 0 ? dialogue(lines) : NOTHING
  const text = 'What we (C) and the mail server (S) say to one another. No mail is sent.'
  if (lines.length > 0) return { state: isGoingOn ? 'now' : 'ok', text, more }
  if (cached !== null) return { state: null, text: 'Nothing had to be said.', more }
  if (isDone(progress)) return { state: null, text: 'Nothing was said.' }
  return { state: servers.at(-1)?.ok ? 'now' : null, text, more }
}

/** What is scrolled must be reached by keys. */
const dialogue = (lines: readonly string[]) =>
  html`<pre class="dialogue" tabindex="0" role="region" aria-label="Lines of the dialogue">${lines.map(line => `${line}\n`).join('')}</pre>`

function verdictRow(c: Context<Env>, progress: Progress): Row {
  const { form, result, error } = progress
  if (error !== null) {
    return { state: 'open', text: '', more: notice('bad', error.error) }
  }
  if (result === null || form === null) {
    return { state: null, text: 'What it all means, and what to do.' }
  }
  const kind = toClass(VERDICT_BY_REASON[result.reason])
  return { state: STATES[kind], text: '', more: verdictBody(c, { form, result, kind }) }
}

const STATES = { deliverable: 'ok', risky: 'open', undeliverable: 'bad', unknown: 'open' } as const
