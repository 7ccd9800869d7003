import { expect, test } from 'vitest'
import { ACTION_ROWS } from '../src/engine/verdict/action.ts'
import { BOUNCE_RATES } from '../src/feedback/bounce-rates.ts'
import { EVENT_TYPES, SENT_KINDS } from '../src/webhooks/event-types.ts'
import { readDoc, replaceTable } from './support/markdown.ts'

// Tables of the documentation that are made from the source. `npm run openapi` writes them.

const TABLES: [page: string, header: string, rows: string[][]][] = [
  [
    'docs/webhooks.md',
    '| event | meaning |',
    SENT_KINDS.map(kind => [`\`${kind}\``, EVENT_TYPES[kind].description]),
  ],
  [
    'docs/projection.md',
    '| result | bounces | weight | source |',
    Object.entries(BOUNCE_RATES).map(([which, { rate, weight, source }]) => [
      ...[`\`${which}\``, `${Number((100 * rate).toFixed(1))}%`, String(weight), source],
    ]),
  ],
  [
    'docs/verdicts.md',
    '| result | because | strict | balanced | lenient |',
    Object.entries(ACTION_ROWS).map(([which, { because, strict, balanced, lenient }]) => [
      ...[`\`${which}\``, because],
      ...[strict, balanced, lenient].map(action => `\`${action}\``),
    ]),
  ],
]

test.each(TABLES)('%s has the rows of its table "%s"', async (page, header, rows) => {
  await expect(
    replaceTable(readDoc(page), header, rows),
    'The source has changed: run `npm run openapi`',
  ).toMatchFileSnapshot(`../${page}`)
})
