import type { Scope } from '../../accounts/scope.ts'

/** What each scope lets a key do, for people. */
export const SCOPE_TEXTS: Readonly<Record<Scope, string>> = {
  'verify:single': 'Verifies one address at a time.',
  'verify:bulk': 'Submits lists of addresses, and files.',
  'jobs:read': 'Sees how lists stand, and downloads their results.',
  'jobs:write': 'Cancels lists, goes on with them, and deletes them.',
  'webhooks:read': 'Sees webhooks and what was sent to them.',
  'webhooks:write': 'Makes, changes and tests webhooks, and sends events again.',
  'account:read': 'Sees credits, use, limits and the history.',
  'keys:write': 'Makes, changes and revokes keys that may do no more than itself.',
  dashboard: 'Signs in to these pages, which show and do what its other scopes allow.',
  '*': 'Everything, also what is added later.',
}
