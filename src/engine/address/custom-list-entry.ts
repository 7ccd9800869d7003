import { type Address, isFault, parseAddress } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import { parseDomain } from './domain.ts'

/** The lists that people keep of their own. */
export type CustomListName = 'disposable' | 'allow' | 'blocked' | 'spamTrap' | 'role'

/** What an entry is looked up by; or why it can be none, in a sentence. */
export type CustomListEntry = { readonly key: string } | { readonly why: string }

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
