import { getDomain } from 'tldts'
import tr46 from 'tr46'

export const isDomainName = name => /^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(name)
const ascii = name => tr46.toASCII(name.trim().toLowerCase(), { useSTD3ASCIIRules: true }) ?? ''
// A public suffix (`co.uk`, `duckdns.org`) has many owners: one bad tenant must not condemn the others.
const isOwned = name => getDomain(name, { allowPrivateDomains: true }) !== null

/** The names that are domains, in ASCII. */
export const toDomains = names =>
  names.map(ascii).filter(name => isDomainName(name) && isOwned(name))

/** The name itself and the domains above it, the longest first. */
export const withParents = name =>
  name.split('.').map((_, index, labels) => labels.slice(index).join('.'))
