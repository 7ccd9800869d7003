import type { Clock } from '../../platform/clock.ts'
import type { SecretBox } from '../../platform/secret-box.ts'

// State of a form with several steps that the browser keeps, encrypted. It is bound to its purpose,
// so that the state of one form is not accepted by another.

type Services = { readonly secretBox: SecretBox; readonly clock: Clock }

type Purpose = 'second_factor' | 'totp_setup' | 'oidc' | 'oidc_account'

/** Encrypts a state that is accepted for `ttlMs`. */
export const sealState = (
  { secretBox, clock }: Services,
  purpose: Purpose,
  state: object,
  ttlMs: number,
): string => secretBox.encrypt(JSON.stringify({ purpose, expiresAt: clock.now() + ttlMs, state }))

/** Returns the state; null if it is expired, altered or of another purpose. */
export function openState<State>(
  { secretBox, clock }: Services,
  purpose: Purpose,
  sealed: string,
): State | null {
  let opened: { purpose: unknown; expiresAt: number; state: State }
  try {
    opened = JSON.parse(secretBox.decrypt(sealed))
  } catch {
    return null
  }
  return opened.purpose === purpose && opened.expiresAt > clock.now() ? opened.state : null
}
