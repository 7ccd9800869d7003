import { expect, test } from 'vitest'
import { ACTION_ROWS } from '../src/engine/verdict/action.ts'
import { REASONS, type Reason } from '../src/engine/verdict/reason.ts'
import { BOUNCE_RATES } from '../src/feedback/bounce-rates.ts'
import { VOCABULARIES, type Vocabulary } from '../src/formats/vocabulary/names.ts'
import { getVocabularyColumns } from '../src/formats/vocabulary/vocabulary.ts'
import { EVENT_TYPES, SENT_KINDS } from '../src/webhooks/event-types.ts'
import { readDoc, replaceTable } from './support/markdown.ts'
import { resultOf } from './support/result.ts'

// Tables of the documentation that are made from the source. `npm run openapi` writes them.

/** The columns that say what is known about an address. */
const WORD_NAMES: Readonly<Record<Vocabulary, readonly string[]>> = {
  zerobounce: ['ZB Status', 'ZB Sub Status'],
  neverbounce: ['email_status'],
  kickbox: ['result', 'reason'],
  reacher: ['is_reachable'],
}

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
  [
    'docs/vocabularies.md',
    '| reason | ZeroBounce | NeverBounce | Kickbox | Reacher |',
    REASONS.map(reason => [`\`${reason}\``, ...VOCABULARIES.map(one => toWords(one, reason))]),
  ],
]

/** Returns the words of a service for a reason. */
function toWords(vocabulary: Vocabulary, reason: Reason): string {
  const result = resultOf(reason)
  const { names, values } = getVocabularyColumns(vocabulary, { width: 0 })
  const cells = values({ email: result.email, class: result.verdict.class, result })
  const words = WORD_NAMES[vocabulary].map(name => cells[names.indexOf(name)])
  return words.flatMap(word => (word == null ? [] : [`\`${word}\``])).join(' ')
}

test.each(TABLES)('%s has the rows of its table "%s"', async (page, header, rows) => {
  await expect(
    replaceTable(readDoc(page), header, rows),
    'The source has changed: run `npm run openapi`',
  ).toMatchFileSnapshot(`../${page}`)
})
