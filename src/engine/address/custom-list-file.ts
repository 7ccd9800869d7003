import { readFileSync, statSync } from 'node:fs'
import { EvError, errorMessage } from '../../platform/error.ts'
import { formatMebibytes } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type Address, isFault, parseAddress } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import { parseDomain } from './domain.ts'

/** Three times the disposable list that ev comes with; held in memory, so many take some 50 MB. */
export const ENTRIES_MAX = 500_000
/** So many entries of usual length, with a comment to each. A list is read in one go, and nothing else is done meanwhile. */
export const SIZE_MAX = 32 * 1024 * 1024
/** Of a line that is wrong, enough to find it by. */
const SHOWN_MAX = 80

/**
 * The keys of a list in a file: UTF-8, one entry a line, empty lines and comments aside. Throws
 * EvError('bad_config') that names the file and the first line that the list cannot take.
 */
export function* keysInFile(
  list: CustomListName,
  path: string,
  entriesMax = ENTRIES_MAX,
): Generator<string> {
  let count = 0
  // A byte order mark is dropped here; what is no UTF-8 becomes U+FFFD, which no entry may hold.
  for (const { number, text } of entriesIn(new TextDecoder('utf-8').decode(bytesOf(path)))) {
    const entry = readEntry(list, text)
    if ('why' in entry) throw badLine(list, path, number, text, entry.why)
    if (++count > entriesMax) throw tooLong(path, `${entriesMax} entries`)
    yield entry.key
  }
}

/** At the start of a line or after a space; elsewhere a # may be part of an address (RFC 5322 §3.2.3). */
const COMMENT = /(?:^|\s)#.*/

/** The lines of a list that are neither empty nor comments, with their numbers. */
export function* entriesIn(list: string): Generator<{ number: number; text: string }> {
  let number = 0
  for (const line of linesIn(list)) {
    number++
    const text = line.replace(COMMENT, '').trim()
    if (text !== '') yield { number, text }
  }
}

/** One after the other: all at once would take several times the size of the file. */
function* linesIn(text: string): Generator<string> {
  let start = 0
  for (const { index, 0: end } of text.matchAll(/\r\n?|\n/g)) {
    yield text.slice(start, index)
    start = index + end.length
  }
  yield text.slice(start)
}

function bytesOf(path: string): Buffer {
  try {
    const stat = statSync(path)
    // A pipe could not be read a second time.
    if (!stat.isFile()) throw new Error('it is no file')
    if (stat.size > SIZE_MAX) throw tooLong(path, formatMebibytes(SIZE_MAX))
    return readFileSync(path)
  } catch (cause) {
    if (cause instanceof EvError) throw cause
    const sentence = `The list ${path} cannot be read: ${errorMessage(cause)}. Correct its name, or leave it out.`
    throw new EvError('bad_config', sentence, { cause })
  }
}

const badLine = (list: CustomListName, path: string, number: number, text: string, why: string) =>
  new EvError(
    'bad_config',
    `The list ${path} has "${sanitizeText(text, SHOWN_MAX)}" in line ${number}. ${why} ` +
      `A line takes ${ENTRY_FORMAT_HINT[list]}; a comment begins with #.`,
  )

const tooLong = (path: string, max: string) =>
  new EvError(
    'bad_config',
    `The list ${path} is longer than ${max}, which is the most. Shorten it.`,
  )

/** The lists that people keep of their own. */
export type CustomListName = 'disposable' | 'allow' | 'blocked' | 'spamTrap' | 'role'

/** What an entry is looked up by; or why it can be none, in a sentence. */
type CustomListEntry = { readonly key: string } | { readonly why: string }

/** What each list takes, said to whoever gave it something else. */
export const ENTRY_FORMAT_HINT: Readonly<Record<CustomListName, string>> = {
  disposable: 'a domain such as example.com',
  allow: 'a domain such as example.com',
  blocked: 'a domain such as example.com or an address such as ann@example.com',
  spamTrap: 'a domain such as example.com or an address such as ann@example.com',
  role: 'what stands before the @, such as frontdesk',
}

/** Reads an entry of a list, without spaces around it. */
export function readEntry(list: CustomListName, text: string): CustomListEntry {
  if (list === 'role') return readRole(text)
  // A domain holds all below it, so these ways of saying that mean the same.
  const domain = text.replace(/^(?:\*?[@.])/, '')
  if (domain !== text || !text.includes('@')) return readDomain(domain)
  if (list === 'blocked' || list === 'spamTrap') return readAddress(text)
  return { why: 'This is an address: leave out the @ and what stands before it.' }
}

/** The key of an address on a list: the provider delivers all its spellings to one mailbox, and none tells ANN from ann. */
export const mailboxKey = (address: Address) => canonicalAddress(address).toLowerCase()

function readDomain(text: string): CustomListEntry {
  const domain = parseDomain(text)
  return isFault(domain) ? { why: domain.message } : { key: domain.ascii }
}

function readAddress(text: string): CustomListEntry {
  const address = parseAddress(text)
  return isFault(address) ? { why: address.message } : { key: mailboxKey(address) }
}

function readRole(text: string): CustomListEntry {
  if (text.includes('@')) return { why: 'Leave out the @ and what follows it.' }
  // What is looked up has lost its tag.
  if (text.includes('+')) return { why: 'Leave out the + and what follows it.' }
  const address = parseAddress(`${text}@role.example`)
  return isFault(address) ? { why: address.message } : { key: address.local.toLowerCase() }
}
