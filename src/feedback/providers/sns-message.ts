import { verify } from 'node:crypto'
import { errorMessage } from '../../platform/error.ts'
import { checkAge, reject } from './checks.ts'
import { textAt } from './json.ts'
import type { ProviderDeps, ProviderRequest } from './provider.ts'

/** An SNS topic. */
type Topic = {
  readonly arn: string
  /** The host of the API of Amazon SNS in the region of the topic. */
  readonly host: string
}

/** Parses the ARN of a topic; null if it is none. */
export function parseTopic(text: string): Topic | null {
  const [arn, partition, region] = ARN.exec(text) ?? []
  if (arn === undefined) return null
  return { arn, host: `sns.${region}.amazonaws.com${partition === 'aws-cn' ? '.cn' : ''}` }
}

const ARN =
  /^arn:(aws|aws-cn|aws-us-gov):sns:([a-z]{2}(?:-[a-z]{2,12}){1,2}-\d):\d{12}:[\w-]{1,256}$/

/** The signed fields in their order, by type of message. `Subject` is optional. */
const NOTIFICATION = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
const CONFIRMATION = [
  ...['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
]
const SIGNED_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Notification', NOTIFICATION],
  ['SubscriptionConfirmation', CONFIRMATION],
  ['UnsubscribeConfirmation', CONFIRMATION],
])

/** Hashes by `SignatureVersion`. */
const HASHES: ReadonlyMap<string, string> = new Map([
  ['1', 'RSA-SHA1'],
  ['2', 'RSA-SHA256'],
])

/**
 * Authenticates a message of Amazon SNS for the topic of the source. Returns the text of a
 * notification; null for another message. Confirms a subscription.
 */
export async function readSnsMessage(
  { body, key }: ProviderRequest,
  deps: ProviderDeps,
): Promise<string | null> {
  const topic = parseTopic(key)
  if (topic === null || textAt(body, 'TopicArn') !== topic.arn)
    reject('authentication', 'The message is not of the topic of this feedback source.')
  checkAge(Date.parse(textAt(body, 'Timestamp') ?? ''), deps.now)
  await checkSignature(body, topic, deps)
  const type = textAt(body, 'Type')
  if (type === 'Notification') return textAt(body, 'Message') ?? ''
  if (type === 'SubscriptionConfirmation') await confirmSubscription(body, topic, deps)
  return null
}

async function checkSignature(body: unknown, topic: Topic, deps: ProviderDeps): Promise<void> {
  const hash = HASHES.get(textAt(body, 'SignatureVersion') ?? '')
  const fields = SIGNED_FIELDS.get(textAt(body, 'Type') ?? '')
  const signature = textAt(body, 'Signature') ?? ''
  const isMissing = (name: string) => name !== 'Subject' && textAt(body, name) === undefined
  if (hash === undefined || fields === undefined || fields.some(isMissing) || signature === '') {
    reject(
      'authentication',
      'The signature is missing or unknown. Turn off raw message delivery of the subscription.',
    )
  }
  const url = textAt(body, 'SigningCertURL') ?? ''
  if (!isUrlAt(url, topic.host) || !CERTIFICATE_PATH.test(url))
    reject('authentication', `SigningCertURL is not a certificate at https://${topic.host}.`)
  const publicKey = await deps.certificates.getKey(url, deps)
  const isValid = verify(
    hash,
    signedText(body, fields),
    publicKey,
    Buffer.from(signature, 'base64'),
  )
  if (!isValid) reject('authentication', 'The signature is wrong.')
}

/** A path without a query: the API of SNS could return chosen text for others. */
const CERTIFICATE_PATH = /^https:\/\/[^/]+\/SimpleNotificationService-[\w-]{1,100}\.pem$/

function signedText(body: unknown, fields: readonly string[]): Buffer {
  const lines = fields.flatMap(name => {
    const value = textAt(body, name)
    return value === undefined ? [] : [name, value]
  })
  return Buffer.from(`${lines.join('\n')}\n`)
}

async function confirmSubscription(
  body: unknown,
  { host }: Topic,
  { getDocument }: ProviderDeps,
): Promise<void> {
  const url = textAt(body, 'SubscribeURL') ?? ''
  if (!isUrlAt(url, host)) reject('authentication', `SubscribeURL is not at https://${host}.`)
  const answer = await getDocument(url).catch((error: unknown) =>
    reject('unavailable', `The subscription cannot be confirmed: ${errorMessage(error)}`),
  )
  if (answer === null) reject('authentication', 'Amazon SNS refused to confirm the subscription.')
}

/** Whether a URL has this host, the default port and no credentials. */
const isUrlAt = (url: string, host: string) =>
  URL.canParse(url) && url.startsWith(`https://${host}/`) && new URL(url).host === host
