import { html } from 'hono/html'
import { formatPercent } from '../../platform/format.ts'
import type { Html } from '../page/html.ts'

export type Used = { readonly used: number; readonly limit: number }

/** How much of something is used, as a bar and in words. */
export function meter({ used, limit }: Used): Html {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const { word, kind } = closeness(share)
  return html`
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill-${kind}" x="0" y="0" width="${(100 * share).toFixed(1)}" height="8" />
    </svg>
    <small>${formatPercent(share, 1)} used: ${word}</small>`
}

function closeness(share: number) {
  if (share >= 1) return { word: 'nothing is left', kind: 'undeliverable' }
  if (share >= CLOSE) return { word: 'the end is close', kind: 'risky' }
  return { word: 'enough is left', kind: 'deliverable' }
}

/** As the first warning of webhooks has it. */
const CLOSE = 0.8
