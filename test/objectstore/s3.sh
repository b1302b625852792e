# Functions for Bash scripts that manage the buckets and accounts of versitygw. Each can be repeated, and ends the script with a message
# if it fails.
#
#   create_bucket BUCKET UID    create the bucket for the claim with that UID, or find that it was created for it
#   delete_bucket BUCKET UID    delete the bucket that was created for that claim, and all objects in it, or find that it does not exist
#   has_bucket BUCKET           tell whether the bucket exists, for if
#   reset_user ACCOUNT FILE     create the account, or give it another secret key, which is in the file
#   delete_user ACCOUNT         delete the account, or find that it does not exist
#   set_policy BUCKET GRANTS    allow what is granted, and nothing else: [{"accountId": "a", "mode": "ReadWrite"}, …], or mode ReadOnly
#
# Environment: S3_ENDPOINT, as http://HOST:PORT; S3_REGION, by default us-east-1; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of an
# administrator. Programs: curl, jq, and those of BusyBox.

export LC_ALL=C # Names of objects are bytes.

# In a pod of PaV, the message is also for those who asked for the bucket.
fail() {
  printf '%s\n' "$*" >&2
  [[ ! -d /pav ]] || printf '%s\n' "$*" >/pav/error
  exit 1
}

# infeasible fails before anything was changed, so that there is nothing to revert.
infeasible() {
  [[ ! -d /pav ]] || printf '%s\n' "$*" >/pav/infeasible
  fail "$@"
}

# request METHOD PATH [BODY] sets status, reply, and code, which is empty if the reply has no error. No secret becomes an argument.
request() {
  local sha256 md5
  sha256=$(printf %s "${3-}" | sha256sum)
  md5=$(printf %s "${3-}" | md5sum | xxd -r -p | base64)
  reply=$(printf %s "${3-}" | curl --silent --show-error --connect-timeout 10 --max-time 300 --write-out '\n%{http_code}' \
    --config <(printf 'user = %s:%s\n' "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY") --aws-sigv4 "aws:amz:${S3_REGION:-us-east-1}:s3" \
    --request "$1" --header "x-amz-content-sha256: ${sha256%% *}" ${3+--header "content-md5: $md5" --data-binary @-} "$S3_ENDPOINT$2") ||
    fail "no answer from $S3_ENDPOINT"
  status=${reply##*$'\n'} reply=${reply%$'\n'*} code='' message=''
  if [[ $reply =~ '<Code>'([^<]*)'</Code><Message>'([^<]*) ]]; then code=${BASH_REMATCH[1]} message=${BASH_REMATCH[2]}; fi
}

# want TASK STATUS... fails if the last request was answered otherwise.
want() {
  [[ " ${*:2} " == *" $status "* ]] || fail "$1: $code $message (HTTP status $status)"
}

# named BUCKET and account ACCOUNT fail if the name could change the meaning of a request.
named() {
  [[ $1 =~ ^[a-z0-9][a-z0-9.-]+[a-z0-9]$ ]] || "${2:-fail}" "no name of a bucket: $1"
}

account() {
  [[ $1 =~ ^[A-Za-z0-9._-]+$ ]] || fail "no name of an account: $1"
}

# claimed_by UID sets tag, which is that of the buckets of a claim.
claimed_by() {
  [[ $1 =~ ^[A-Za-z0-9-]+$ ]] || fail "no UID: $1"
  tag="<Tag><Key>pav.albertofaria.github.io/claim-uid</Key><Value>$1</Value></Tag>"
}

# One request creates the bucket with its tag, so that no script leaves a bucket without the tag, wherever it is interrupted.
create_bucket() {
  named "$1" infeasible
  local tag
  claimed_by "$2"
  request PUT "/$1" "<CreateBucketConfiguration><Tags>$tag</Tags></CreateBucketConfiguration>"
  want "creating bucket $1" 200 409
  request GET "/$1?tagging="
  [[ $code == NoSuchTagSet ]] || want "reading the tags of bucket $1" 200
  [[ $reply == *"$tag"* ]] || infeasible "bucket $1 exists, and was not created for this claim"
}

# A name may be another's by now, as when a pod runs late.
delete_bucket() {
  named "$1"
  local tag keys before=
  claimed_by "$2"
  request GET "/$1?tagging="
  if [[ $code == NoSuchBucket ]]; then return; fi
  [[ $code == NoSuchTagSet ]] || want "reading the tags of bucket $1" 200
  [[ $reply == *"$tag"* ]] || fail "bucket $1 was not created for this claim, and is left as it is"
  while request DELETE "/$1" && [[ $code == BucketNotEmpty ]]; do
    request GET "/$1?list-type=2"
    want "listing the objects of bucket $1" 200
    keys=$(printf %s "$reply" | sed 's/<Key>/\n&/g' | sed -n 's,^\(<Key>[^<]*</Key>\).*,\1,p')
    [[ $keys != "$before" ]] || fail "bucket $1 keeps objects that were deleted, the first is ${keys%%$'\n'*}"
    before=$keys
    request POST "/$1?delete=" "<Delete>$(printf %s "$keys" | sed 's,.*,<Object>&</Object>,')</Delete>"
    want "deleting the objects of bucket $1" 200
  done
  [[ $code == NoSuchBucket ]] || want "deleting bucket $1" 204
}

has_bucket() {
  named "$1"
  request GET "/$1?location="
  [[ $code != NoSuchBucket ]]
}

# An existing account gets the role of a user, too.
reset_user() {
  account "$1"
  local secret
  secret=$(<"$2")
  [[ $secret =~ ^[A-Za-z0-9+/=_-]+$ ]] || fail "the secret key of account $1 is empty, or has characters that are not of Base64"
  request PATCH /create-user "<Account><Access>$1</Access><Secret>$secret</Secret><Role>user</Role></Account>"
  if [[ $code == XAdminUserExists ]]; then
    request PATCH "/update-user?access=$1" "<MutableProps><Secret>$secret</Secret><Role>user</Role></MutableProps>"
  fi
  want "setting the secret key of account $1" 200 201
}

delete_user() {
  account "$1"
  request PATCH "/delete-user?access=$1"
  want "deleting account $1" 200
}

# policy BUCKET GRANTS prints the policy, or nothing if there are no grants: then only the owner and administrators have access.
policy() {
  jq -cn --arg arn "arn:aws:s3:::$1" --argjson grants "$2" '
    def allow($mode; $actions): [$grants[] | select(.mode == $mode).accountId] | unique | select(. != []) |
      {Effect: "Allow", Principal: {AWS: .}, Action: ($actions | split(" ") | map("s3:" + .)), Resource: [$arn, $arn + "/*"]};
    "GetObject GetObjectAttributes GetObjectTagging GetBucketLocation ListBucket" as $read |
    "PutObject DeleteObject PutObjectTagging DeleteObjectTagging" as $write |
    "AbortMultipartUpload ListMultipartUploadParts ListBucketMultipartUploads" as $upload |
    def valid: (.accountId | test("\\A[A-Za-z0-9._-]+\\z")) and (.mode == "ReadWrite" or .mode == "ReadOnly");
    if ($grants | type == "array") and all($grants[]; valid) then . else error("invalid grants") end |
    [allow("ReadOnly"; $read), allow("ReadWrite"; "\($read) \($write) \($upload)")] | select(. != []) |
    {Version: "2012-10-17", Statement: .}'
}

put_policy() {
  local wanted
  wanted=$(policy "$1" "$2") || fail "no list of grants: $2"
  if [[ -n $wanted ]]; then request PUT "/$1?policy=" "$wanted"; else request DELETE "/$1?policy="; fi
}

# The gateway refuses a policy with an account that does not exist. A lost account must not prevent that others are granted access or
# lose it, so it is left out.
set_policy() {
  named "$1"
  put_policy "$1" "$2"
  if [[ $code == MalformedPolicy ]]; then
    local known
    request PATCH /list-users
    want "listing accounts" 200
    known=$(printf %s "$reply" | grep -o '<Access>[^<]*' | jq -R '.[8:]' | jq -cs .)
    printf 'bucket %s: left out accounts that do not exist\n' "$1" >&2
    put_policy "$1" "$(jq -cn --argjson grants "$2" --argjson known "$known" '$grants | map(select(.accountId | IN($known[])))')"
  fi
  want "setting the policy of bucket $1" 204
}
