import { permits, type Scope } from '../../account/scope.ts'
import type { Caller } from '../context.ts'
import { ApiError } from '../error/api-error.ts'

/** A key makes, changes and renews only keys that may do no more than itself: else it could make itself more than it is. */
export function refuseWider({ key }: Caller, scopes: readonly Scope[]): void {
  const beyond = scopes.filter(scope => !permits(key.scopes, scope))
  if (beyond.length === 0) return
  throw new ApiError(
    'insufficient_scope',
    `This API key lacks ${beyond.join(', ')} itself, so it cannot give it to another`,
  )
}
