/** Longer ones are in nobody's use, and every part must fit in what encoders count with. */
const maxLength = 128

/** Whether a text is an object identifier in dotted form (X.660): 0 to 2, then up to 39 below 2, then any numbers. */
export function isOid(text: string): boolean {
  if (text.length > maxLength || !/^[0-2](?:\.(?:0|[1-9][0-9]{0,14}))+$/.test(text)) return false
  const [root = '', second = ''] = text.split('.', 2)
  return root === '2' || Number(second) < 40
}
