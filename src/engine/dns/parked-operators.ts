import type { OperatorRow } from './operators.ts'

/**
 * Services that take the mail of domains for sale and of misspelled domains. Parking services answer
 * for their customers; the others are traps whose owner is not known.
 *
 * Sources: "IMC": J. Szurdi, N. Christin, "Email Typosquatting", IMC 2017, the mail servers that most
 * misspelled domains share. "Survey": public surveys of the exchangers of abused domains, 2026, where
 * nothing else was found behind the host. "Provider": the provider's own default exchanger.
 */
export const PARKED_ROWS: readonly OperatorRow[] = [
  // Provider, and survey
  ['above', 'Above.com parking', 'parked', 'park-mx.above.com'],
  ['dynadot-parking', 'Dynadot parking', 'parked', 'parkmail.dynadot.com'],
  ['sedo', 'Sedo parking', 'parked', 'sedoparking.com'],
  ['bodis', 'Bodis parking', 'parked', 'bodis.com'],
  ['parkingcrew', 'ParkingCrew', 'parked', 'parkingcrew.net'],
  ['parklogic', 'ParkLogic', 'parked', 'parklogic.com'],
  // IMC: parked domains of Tucows
  ['tucows-parking', 'Tucows parking', 'parked', 'hostedmxserver.com'],
  // IMC: sells what bounces off misspelled domains
  ['bounce-io', 'bounce.io', 'parked', 'b-io.co'],
  // IMC, and survey
  ['h-email', 'h-email.net mail trap', 'parked', 'h-email.net'],
  ['mb5p', 'mb5p.com mail trap', 'parked', 'mb5p.com mb1p.com mb2p.com m1bp.com m2bp.com'],
  ['hope-mail', 'hope-mail.com mail trap', 'parked', 'hope-mail.com'],
  // Survey: the exchanger of domains parked at giantpanda.com
  ['mailerhost', 'mailerhost.net mail trap', 'parked', 'mailerhost.net'],
]
