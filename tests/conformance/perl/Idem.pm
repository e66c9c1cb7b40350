package Idem;

# Idempotency keys decided in Postgres, for DBD::Pg. Copy this file into your project.
#
#     my $answer = Idem::atomic($dbh, \%request, sub ($dbh) { return { status => 201, body => '{}' } });
#
# The $dbh has RaiseError, and AutoCommit outside transactions. A request has scope, key_header, method, path, body,
# content_type and policy; an answer has status, headers (pairs of a name and a value) and body.

use v5.26;
use warnings;
use experimental 'signatures';

use DBD::Pg ':pg_types';
use JSON::PP;

use constant TRIES => 5;

my $JSON  = JSON::PP->new->allow_nonref;
my %BYTES = map { $_ => 1 } qw(fingerprint body);
my %JSONB = map { $_ => 1 } qw(headers fields state args);
my %KINDS = (
    IK001 => 'KeyInvalid', IK002 => 'LostReservation', IK003 => 'NoSuchReservation', IK004 => 'WrongMode',
    IK005 => 'NotCompleted', IK006 => 'NoSuchPolicy', IK007 => 'LimitExceeded',
);

# Makes reservation, work and answer one transaction, and begins it again where Postgres asks for that (40001).
sub atomic ($dbh, $request, $work) {
    for my $tried (1 .. TRIES) {
        my $answer = eval { guarded($dbh, sub { $dbh->begin_work; attempt($dbh, $request, $work) }) };
        my ($error, $state) = ($@, $dbh->state);
        $dbh->rollback unless $dbh->{AutoCommit};
        return $answer unless $error;
        die $error if $state ne '40001' || $tried == TRIES;
    }
}
