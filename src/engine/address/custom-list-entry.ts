import { type Address, isFault, parseAddress } from './address.ts'
import { canonicalAddress } from './canonical.ts'
import { parseDomain } from './domain.ts'

/** The names of the custom lists. */
export type CustomListName = 'disposable' | 'allow' | 'blocked' | 'spamTrap' | 'role'

/** The lookup key of an entry, or a sentence that says why it is invalid. */
type CustomListEntry = { readonly key: string } | { readonly why: string }

/** The entry format of each list, for error messages. */
export const ENTRY_FORMAT_HINT: Readonly<Record<CustomListName, string>> = {
  disposable: 'a domain such as example.com',
  allow: 'a domain such as example.com',
  blocked: 'a domain such as example.com or an address such as ann@example.com',
  spamTrap: 'a domain such as example.com or an address such as ann@example.com',
  role: 'the part before the @, such as frontdesk',
}

/** Parses a trimmed entry of a list. */
export function readEntry(list: CustomListName, text: string): CustomListEntry {
  if (list === 'role') return readRole(text)
  // A domain includes its subdomains, so these prefixes add nothing.
  const domain = text.replace(/^(?:\*?[@.])/, '')
  if (domain !== text || !text.includes('@')) return readDomain(domain)
  if (list === 'blocked' || list === 'spamTrap') return readAddress(text)
  return { why: 'This is an address: leave out the @ and the part before it.' }
}

/** Returns the lookup key of an address: its canonical spelling in lower case. */
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
  if (text.includes('@')) return { why: 'Leave out the @ and the part after it.' }
  // The lookup strips the tag, so an entry with a tag would never match.
  if (text.includes('+')) return { why: 'Leave out the + and the part after it.' }
  const address = parseAddress(`${text}@role.example`)
  return isFault(address) ? { why: address.message } : { key: address.local.toLowerCase() }
}
