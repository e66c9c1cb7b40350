package Idem::Leased;

# For an effect outside the database: it happens under a key of its own, between the commit of the reservation and the
# transaction that the work and its answer share. What dies once it may have happened leaves the outcome unknown, which
# the policy of the key decides.
#
#     Idem::Leased::leased($dbh, $request, sub ($key) { $provider->refund($key) }, sub ($dbh, $made) { ... });

use v5.26;
use warnings;
use experimental 'signatures';

use Idem;

sub leased ($dbh, $request, $effect, $work) {
    local $dbh->{HandleError} = \&Idem::raise;
    my %asked = (%$request, mode => 'leased', token => Idem::new_token());
    my ($row) = Idem::call($dbh, http_reserve => \%asked)->@*;
    return { %$row{qw(status headers body)} } if defined $row->{status};

    my %owned  = (scope => $request->{scope}, key => $row->{key}, token => $row->{token});
    my $answer = eval { _finish($dbh, \%owned, $work, scalar $effect->($row->{downstream_key})) };
    return $answer if $answer;
    my $error = $@;
    eval {    # where this fails, the lease ends by itself
        $dbh->rollback unless $dbh->{AutoCommit};
        Idem::call($dbh, defer => \%owned) if defined $owned{key};
    };
    die $error;
}

sub _finish ($dbh, $owned, $work, $made) {
    $dbh->begin_work;
    $dbh->do('set transaction isolation level read committed');
    my $answer  = $work->($dbh, $made);
    my ($ended) = Idem::call($dbh, http_complete => { %$owned, %$answer{qw(status headers body)} })->@*;
    $ended->{http_complete} eq 'repeated' ? $dbh->rollback : $dbh->commit;
    return $answer;
}

1;
