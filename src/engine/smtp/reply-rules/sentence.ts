import { LRUCache } from 'lru-cache'
import { groupBy } from '../../../platform/es2024.ts'
import { LANGUAGES, UNSPACED } from './languages.ts'
import { type Concept, ENGLISH, type Lexicon, OFTEN_MISSPELLED } from './lexicon.ts'

/**
 * Translates the text of a reply (see `plainText`), in any of the languages, into a sentence of a
 * few concepts. `generic.ts`, `domains.ts` and `mailbox.ts` are the grammar of these sentences.
 *
 *     "<>: Recipient address rejected: User unknown in virtual table" → " addr box refused box missing list"
 *     "El buzón no existe"                                            → " box missing"
 *     "该用户不存在"                                                     → " box missing"
 *     "Sender address rejected: mailbox not found"                    → " sender refused box missing"
 *
 * 1. Words become concepts: whole terms first, then the longest stem (`desconocid*`), then a term
 *    that differs by one letter (`unkown`). Words without a meaning of their own are left out, and
 *    unknown words become `_`.
 * 2. A negated predicate becomes its opposite: "not found" and "existiert nicht" are `missing`,
 *    "not active" is `closed`, "not permitted" is `refused`.
 * 3. A noun phrase becomes the word that says whose it is: "recipient address" is `box`, "sender
 *    address" and "domain of the sender" are `sender`, "your server" is `yours`.
 *
 * Each word has a space before it; `.` ends a clause.
 */
export function toSentence(text: string): string {
  const words = joinPhrases(foldNegations(toConcepts(splitWords(text))))
  return words.length === 0 ? '' : ` ${words.join(' ')}`
}

/** `addr` is an address that was masked, `yours` a host of this client. */
type Word = Concept | 'addr' | 'yours' | '.' | '_'

/** Servers state the cause first; the longest texts of operators have 120 words. */
const WORDS_MAX = 150

/** Splits a text into words, `<>` for an address, `.` for the end of a clause. */
function splitWords(text: string): string[] {
  const plain = ASCII.test(text) ? text : toAscii(text)
  const spaced = UNSPACED_LETTERS.test(plain) ? spaceTerms(plain) : plain
  const words: string[] = []
  for (const chunk of spaced.split(' ')) {
    if (words.length >= WORDS_MAX) break
    if (PLAIN_WORD.test(chunk)) words.push(chunk)
    else if (chunk !== '') splitChunk(chunk, words)
  }
  return words
}

/** Splits what stands between two spaces, such as `(non-existent);`, and appends its words. */
function splitChunk(chunk: string, words: string[]): void {
  for (const [part] of chunk.matchAll(PART)) {
    if (part === '<>') words.push(part)
    else if (part.includes('://') || part.includes('@')) words.push('_')
    else splitPart(part, words)
  }
}

function splitPart(part: string, words: string[]): void {
  const end = CLAUSE_END.exec(part)
  const bare = end === null ? part : part.slice(0, end.index)
  // After a colon, what follows is not a part of its noun phrase, as in "IP address".
  if (IP_ADDRESS.test(bare)) words.push(...(bare.endsWith(':') ? ['ip', '_'] : ['ip']))
  else if (HOST_NAME.test(bare)) words.push('_')
  else {
    for (const word of bare.replace(NEGATION, ' not').split(SEPARATOR)) {
      if (word !== '') words.push(word)
    }
  }
  if (end !== null) words.push('.')
}

function toConcepts(words: readonly string[]): Word[] {
  const { pairStarts } = getTables()
  const concepts: Word[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string
    const pair = pairStarts.has(word) ? findPair(`${word} ${words[i + 1] ?? ''}`) : undefined
    if (pair !== undefined) i++
    const concept = pair ?? conceptOf(word)
    if (concept !== 'noise') concepts.push(concept)
  }
  return concepts
}

function conceptOf(word: string): Word {
  if (word === '<>') return 'addr'
  if (word === '.' || word === '_') return word
  if (word.startsWith(MARK)) return getTables().unspaced.get(word.slice(1)) ?? '_'
  const known = WORDS.get(word)
  if (known !== undefined) return known
  const concept = lookUpWord(word)
  WORDS.set(word, concept)
  return concept
}

/** Words that were looked up before, as servers repeat theirs. */
const WORDS = new LRUCache<string, Word>({ max: 4_000 })

function lookUpWord(word: string): Word {
  if (HAS_DIGIT.test(word)) return '_'
  const { terms, stemLengthMin } = getTables()
  return terms.get(word) ?? findStem(word, stemLengthMin) ?? findMisspelled(word) ?? '_'
}

/** Finds a term of two words. A stem of one word says nothing about the second. */
const findPair = (words: string): Concept | undefined =>
  getTables().terms.get(words) ?? findStem(words, words.indexOf(' ') + 2)

/** Finds the longest stem that a text begins with. */
function findStem(text: string, lengthMin: number): Concept | undefined {
  const { stems, stemLengthMax } = getTables()
  for (let length = Math.min(text.length, stemLengthMax); length >= lengthMin; length--) {
    const concept = stems.get(text.slice(0, length))
    if (concept !== undefined) return concept
  }
  return undefined
}

/** Finds the term that differs by one letter: missing, added, wrong or swapped with the next. */
function findMisspelled(word: string): Concept | undefined {
  if (word.length < MISSPELLED_LENGTH_MIN || word.length > MISSPELLED_LENGTH_MAX) return undefined
  const { misspelled } = getTables()
  for (const variant of listVariants(word)) {
    const concept = misspelled.get(variant)
    if (concept !== undefined) return concept
  }
  return undefined
}

/** The word, and the word without each of its letters. Two words with a common variant are close. */
const listVariants = (word: string): string[] => [
  word,
  ...Array.from(word, (_, at) => word.slice(0, at) + word.slice(at + 1)),
]

const OPPOSITES: Partial<Record<Word, Concept>> = {
  exist: 'missing',
  active: 'closed',
  allowed: 'refused',
}

/** Replaces "not found", "found not" and "exists here not" by `missing`, and so on. */
function foldNegations(words: readonly Word[]): Word[] {
  const folded: Word[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as Word
    const after = word === 'not' && words[i + 1] === '_' ? i + 2 : i + 1
    const opposite = NEGATIONS.has(word) ? OPPOSITES[words[after] as Word] : undefined
    if (word === 'not' && isClauseEnd(words[i + 1])) removePlaceAfterExist(folded)
    const before = word === 'not' ? OPPOSITES[folded.at(-1) as Word] : undefined
    if (opposite !== undefined) {
      folded.push(opposite)
      i = after
    } else if (before !== undefined) folded[folded.length - 1] = before
    else folded.push(word)
  }
  return folded
}

/**
 * Removes the place in "exists here" and "exists on this server" before a negation, which German puts
 * last: "existiert auf diesem Server nicht".
 */
function removePlaceAfterExist(words: Word[]): void {
  const verb = words.findLastIndex(word => !PLACES.has(word))
  if (words[verb] === 'exist') words.length = verb + 1
}

const isClauseEnd = (word: Word | undefined) => word === undefined || word === '.'
const PLACES: ReadonlySet<Word> = new Set<Word>(['here', 'server', 'domain'])

const NEGATIONS: ReadonlySet<Word> = new Set<Word>(['not', 'no', 'never'])

/** What two nouns in a row are about: `PHRASES[first][second]`. */
const PHRASES: Partial<Record<Word, Partial<Record<Word, Word>>>> = {
  mail: { box: 'box', domain: 'domain', server: 'server', mail: 'mail', space: 'space' },
  box: { box: 'box', domain: 'domain', sender: 'sender', yours: 'yours' },
  domain: { sender: 'sender', domain: 'domain' },
  sender: { box: 'sender', domain: 'sender', mail: 'sender', sender: 'sender', addr: 'sender' },
  send: { box: 'sender', domain: 'sender', host: 'client', server: 'client', ip: 'ip' },
  ip: { box: 'ip', ip: 'ip', host: 'ip', server: 'ip', conn: 'ip' },
  client: { box: 'client', ip: 'client', host: 'client', server: 'client' },
  helo: { box: 'helo', domain: 'helo', helo: 'helo', dns: 'helo', list: 'helo', lookup: 'helo' },
  dns: { dns: 'dns', lookup: 'dns', list: 'dns', helo: 'helo' },
  // A server speaks to the client, whose mailbox and domain are those of MAIL FROM.
  your: {
    box: 'sender',
    domain: 'sender',
    sender: 'sender',
    mail: 'your',
    helo: 'helo',
    server: 'yours',
    host: 'yours',
    ip: 'yours',
    client: 'yours',
  },
  yours: {
    box: 'yours',
    server: 'yours',
    ip: 'yours',
    host: 'yours',
    domain: 'yours',
    dns: 'helo',
  },
}

function joinPhrases(words: readonly Word[]): Word[] {
  const joined: Word[] = []
  for (const word of words) {
    const phrase = PHRASES[joined.at(-1) as Word]?.[word]
    if (phrase === undefined) joined.push(word)
    else joined[joined.length - 1] = phrase
  }
  return joined
}

const listTerms = (lexicon: Lexicon): [term: string, concept: Concept][] =>
  Object.entries(lexicon).flatMap(([concept, terms]) =>
    terms.split(', ').map((term): [string, Concept] => [term, concept as Concept]),
  )

/** The terms of all languages in the forms in which they are looked up. */
type Tables = {
  readonly terms: ReadonlyMap<string, Concept>
  /** Terms of any ending, without their `*`. */
  readonly stems: ReadonlyMap<string, Concept>
  readonly stemLengthMin: number
  readonly stemLengthMax: number
  /** The first words of the terms of two words. */
  readonly pairStarts: ReadonlySet<string>
  /** What servers misspell, by its variants. Errors in other words change no verdict. */
  readonly misspelled: ReadonlyMap<string, Concept>
  readonly unspaced: ReadonlyMap<string, Concept>
  /** The terms of languages without spaces by their first letter, the longest first. */
  readonly unspacedByLetter: ReadonlyMap<string, readonly string[]>
}

let tables: Tables | undefined

/** Builds the tables at the first reply: they take 5 ms, and most commands read none. */
function getTables(): Tables {
  tables ??= buildTables()
  return tables
}

function buildTables(): Tables {
  // English comes last: where two languages share a word, servers mean English.
  const spaced = [...Object.values(LANGUAGES), ENGLISH].flatMap(listTerms)
  const stems = spaced.filter(([term]) => term.endsWith('*'))
  const stemLengths = stems.map(([term]) => term.length - 1)
  const unspaced = Object.values(UNSPACED)
    .flatMap(listTerms)
    .sort(([a], [b]) => b.length - a.length)
  return {
    terms: new Map(spaced),
    stems: new Map(stems.map(([term, concept]) => [term.slice(0, -1), concept])),
    stemLengthMin: Math.min(...stemLengths),
    stemLengthMax: Math.max(...stemLengths),
    pairStarts: new Set(
      spaced.flatMap(([term]) => (term.includes(' ') ? term.slice(0, term.indexOf(' ')) : [])),
    ),
    misspelled: new Map(
      listTerms(OFTEN_MISSPELLED).flatMap(([term, concept]) =>
        listVariants(term).map((variant): [string, Concept] => [variant, concept]),
      ),
    ),
    unspaced: new Map(unspaced.map(([term, concept]) => [term.replaceAll(' ', ''), concept])),
    unspacedByLetter: groupBy(
      unspaced.map(([term]) => term),
      term => term.charAt(0),
    ),
  }
}

/** Shorter words are too close to each other, such as "used" and "user". */
const MISSPELLED_LENGTH_MIN = 6
/** The length of the longest term that is looked for, "misspelled", with some letters more. */
const MISSPELLED_LENGTH_MAX = 14

/** Marks a term that `spaceTerms` found. */
const MARK = '#'

/** Without spaces, as much text as `WORDS_MAX` words. */
const UNSPACED_LENGTH_MAX = 500

/** Puts spaces around the terms of languages without spaces, and marks the terms. */
function spaceTerms(text: string): string {
  const { unspacedByLetter } = getTables()
  const parts: string[] = []
  const length = Math.min(text.length, UNSPACED_LENGTH_MAX)
  for (let at = 0; at < length; ) {
    const letter = text.charAt(at)
    const term = unspacedByLetter.get(letter)?.find(term => text.startsWith(term, at))
    if (term === undefined) parts.push(spaceLetter(letter))
    else parts.push(` ${MARK}${term.replaceAll(' ', '')} `)
    at += term?.length ?? 1
  }
  return parts.join('')
}

/** What is left between the terms of these languages are particles and endings. */
function spaceLetter(letter: string): string {
  if (UNSPACED_CLAUSE_END.test(letter)) return ' ; '
  return UNSPACED_LETTERS.test(letter) ? ' ' : letter
}

/** Replaces the letters that have no accent to remove. */
const toAscii = (text: string) => text.replace(/[łıßøæđ]/g, letter => LETTERS[letter] ?? letter)
const LETTERS: Readonly<Record<string, string>> = {
  ł: 'l',
  ı: 'i',
  ß: 'ss',
  ø: 'o',
  æ: 'ae',
  đ: 'd',
}

const ASCII = /^[\0-\x7F]*$/
const UNSPACED_LETTERS = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/
const UNSPACED_CLAUSE_END = /[。！；]/
/** Most of the words of a reply. */
const PLAIN_WORD = /^[a-z]+$/
const PART = /<>|[^<>()[\]{}",、，：]+/g
const CLAUSE_END = /(?<![.;!?])[.;!?]+$/
const IP_ADDRESS =
  /^\[?\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|^[\da-f]{1,4}:[\da-f]{0,4}:[\da-f:]{1,40}$/
const HOST_NAME = /^[a-z\d_-]+(?:\.[a-z\d_-]+)+:?$/
const NEGATION = /n't\b/
const SEPARATOR = /[^\p{L}\p{N}#]+/u
const HAS_DIGIT = /\d/
