/**
 * Compiles a phrase of the words of `sentence.ts` to a pattern. `box missing` are two words in this
 * order, `..` are up to three words between them that name nothing else a reply could be about, and
 * `....` up to eight words, all of one clause; `(a|b)` is a choice, `a?` is optional, `^` and `$`
 * are the start and the end of the sentence.
 */
export function phrase(text: string): RegExp {
  const source = text.split(' ').map(compilePart).join('')
  return new RegExp(`${source}(?= |$)`)
}

function compilePart(part: string): string {
  if (part === '^' || part === '$') return part
  if (part === '..') return `${NO_NOUN}{0,3}`
  if (part === '....') return `${ANY_WORD}{0,8}`
  const isOptional = part.endsWith('?')
  if (part.startsWith('(^|')) return `(?:^|${compilePart(part.replace('^|', ''))})`
  const bare = isOptional ? part.slice(0, -1) : part
  if (bare.endsWith('|$)')) return `(?:${compilePart(bare.replace('|$)', ')'))}|$)`
  const word = ` ${bare.replace('(', '(?:').replace('.', '\\.')}`
  return isOptional ? `(?:${word})?` : word
}

/** Not the end of a clause. */
const ANY_WORD = '(?: [a-z_]{1,12})'
const NO_NOUN =
  '(?: (?!box|addr|person|domain|sender|ip|client|yours|helo|part|command)[a-z_]{1,12})'
