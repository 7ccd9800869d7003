import { html } from 'hono/html'
import type { Finding } from '../../doctor/finding.ts'
import type { Html } from '../page/html.ts'

export type State = Finding['state']

/** How well something is, told by its sign and a word as well as by its colour. */
export function statusIcon(state: State, word = WORDS[state]): Html {
  const { sign, kind } = LOOKS[state]
  return html`<span class="badge is-${kind}"><span aria-hidden="true">${sign}</span> ${word}</span>`
}

const WORDS: Readonly<Record<State, string>> = {
  ok: 'well',
  warn: 'could be better',
  fail: 'to mend',
}

const LOOKS: Readonly<Record<State, { readonly sign: string; readonly kind: string }>> = {
  ok: { sign: '✓', kind: 'ok' },
  warn: { sign: '!', kind: 'warn' },
  fail: { sign: '✕', kind: 'bad' },
}
