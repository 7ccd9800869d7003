import type { Route } from './route.ts'

/** Why mail for a domain goes nowhere, or why nobody knows, in words that go on a sentence; null where it goes somewhere. */
export function noMailText(route: Route): string | null {
  switch (route.kind) {
    case 'no-domain':
      return 'the DNS says that there is no such name'
    case 'no-mail':
      return 'the domain has neither MX nor address records'
    case 'null-mx':
      return 'the domain publishes a null MX (RFC 7505)'
    case 'unknown':
      if (route.detail !== undefined) return route.detail
      return route.fault === 'timeout' ? 'the DNS did not answer' : 'the DNS servers failed'
    case 'mx':
    case 'implicit':
      return null
  }
}
