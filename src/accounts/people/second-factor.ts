import { type AuditAction, addAuditEntry, type Origin } from '../../audit.ts'
import { type Trx, write } from '../../db/database.ts'
import { MINUTE } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import type { Account } from '../account-store.ts'
import { hashSecret } from '../key.ts'
import {
  deleteRecoveryCodes,
  insertRecoveryCodes,
  type Person,
  updatePerson,
  useRecoveryCode,
  useTotpStep,
} from './person-store.ts'
import { openState, sealState } from './sealed-state.ts'
import type { Limited, SignInServices } from './sign-in.ts'
import { failuresOf, toLimited } from './sign-in.ts'
import { findTotpStep, newTotpSecret, randomBase32 } from './totp.ts'

/**
 * Whether a person must set up a second factor before anything else: the account requires one, and
 * the password alone would sign the person in. The identity provider asks for its own.
 */
export const lacksSecondFactor = (
  { two_factor_required: isRequired }: Pick<Account, 'two_factor_required'>,
  { password, totp_secret: secret }: Person,
): boolean => isRequired === 1 && password !== null && secret === null

type CodeOutcome = Limited | { readonly kind: 'refused' } | { readonly kind: 'accepted' }

/**
 * Verifies a code of the authenticator app or a recovery code. Each is accepted once. The failures
 * of a person are limited; only a client that knows the password causes them.
 */
export async function verifySecondFactor(
  services: SignInServices,
  person: Person,
  { code, ip }: { readonly code: string; readonly ip: string },
): Promise<CodeOutcome> {
  const attempt = await services.limits.charge([failuresOf(`code:${person.id}`)])
  if (attempt.refusedBy !== null) return toLimited(attempt)
  const origin = { actor: 'session', keyId: null, person, sessionId: null, ip } as const
  const isAccepted = await write(services.database, trx =>
    isTotp(code)
      ? acceptTotp(trx, services, person, code)
      : acceptRecoveryCode(trx, { ...services, origin }, person, code),
  )
  if (!isAccepted) return { kind: 'refused' }
  attempt.giveBack(0)
  return { kind: 'accepted' }
}

const isTotp = (code: string) => /^[\d\s]*$/.test(code)

async function acceptTotp(
  trx: Trx,
  { secretBox, clock }: SignInServices,
  { id, totp_secret: encrypted }: Person,
  code: string,
): Promise<boolean> {
  if (encrypted === null) return false
  const step = findTotpStep(secretBox.decrypt(encrypted), code, clock.now())
  return step !== null && useTotpStep(trx, id, step)
}

type Audited = SignInServices & { readonly origin: Origin }

async function acceptRecoveryCode(
  trx: Trx,
  services: Audited,
  person: Person,
  code: string,
): Promise<boolean> {
  if (!(await useRecoveryCode(trx, person.id, hashRecoveryCode(code)))) return false
  await audit(trx, services, person, 'person.recovery_code_used')
  return true
}

const audit = (trx: Trx, services: Audited, person: Person, action: AuditAction) =>
  addAuditEntry(trx, services, { action, accountId: person.account_id, target: person })

/** Time to install an authenticator app. */
const SETUP_TTL_MS = 30 * MINUTE

type Setup = { readonly personId: string; readonly secret: string }

/** Starts the setup of a second factor: a secret for the app, and a state that the form sends back. */
export function startTotpSetup(
  services: Pick<SignInServices, 'random' | 'secretBox' | 'clock'>,
  { id }: Person,
) {
  const secret = newTotpSecret(services.random)
  const state: Setup = { personId: id, secret }
  return { secret, setup: sealState(services, 'totp_setup', state, SETUP_TTL_MS) }
}

/** Returns the secret of a setup that the person has started; null if it has expired. */
export function findSetupSecret(
  services: Pick<SignInServices, 'secretBox' | 'clock'>,
  { id }: Person,
  setup: string,
): string | null {
  const state = openState<Setup>(services, 'totp_setup', setup)
  return state !== null && state.personId === id ? state.secret : null
}

/**
 * Enables the second factor if the code proves that the app has the secret. Returns the recovery
 * codes, which are shown once; null if the code is wrong.
 */
export async function enableTotp(
  services: Audited,
  person: Person,
  { secret, code }: { readonly secret: string; readonly code: string },
): Promise<readonly string[] | null> {
  const step = findTotpStep(secret, code, services.clock.now())
  if (step === null) return null
  const codes = newRecoveryCodes(services.random)
  const patch = { totp_secret: services.secretBox.encrypt(secret), totp_step: step }
  await write(services.database, async trx => {
    await updatePerson(trx, person.id, patch)
    await insertRecoveryCodes(trx, person.id, codes.map(hashRecoveryCode))
    await audit(trx, services, person, 'person.totp_enabled')
  })
  return codes
}

/** Disables the second factor and deletes the recovery codes. */
export const disableTotp = (services: Audited, person: Person): Promise<void> =>
  write(services.database, async trx => {
    await updatePerson(trx, person.id, { totp_secret: null, totp_step: null })
    await deleteRecoveryCodes(trx, person.id)
    await audit(trx, services, person, 'person.totp_disabled')
  })

/** Replaces the recovery codes. Returns the new ones, which are shown once. */
export async function replaceRecoveryCodes(
  services: Audited,
  person: Person,
): Promise<readonly string[]> {
  const codes = newRecoveryCodes(services.random)
  await write(services.database, async trx => {
    await insertRecoveryCodes(trx, person.id, codes.map(hashRecoveryCode))
    await audit(trx, services, person, 'person.recovery_codes_created')
  })
  return codes
}

const RECOVERY_CODES = 10
/** 80 bits of entropy, so a fast hash is enough. */
const RECOVERY_CODE_LENGTH = 16

const newRecoveryCodes = (random: Random): readonly string[] =>
  Array.from({ length: RECOVERY_CODES }, () =>
    randomBase32(random, RECOVERY_CODE_LENGTH).replaceAll(/.{4}(?=.)/g, '$&-'),
  )

const hashRecoveryCode = (code: string): string =>
  hashSecret(`recovery ${code.replaceAll(/[\s-]/g, '').toUpperCase()}`)
